from __future__ import annotations

def test_x(redux, replay):
    import time
    t=time.time()
    best = sorted(redux.models, key=lambda m: -sum(r[m]==r["answer"] for r in redux.rows))[:3]
    short = lambda n: n[-64:].lstrip("._-")
    done = replay(redux, title="Which frontier model is best on MMLU-Redux?", design="groups: {subject: strata}\nmissing: wrong", analyses=[
      "{id: accuracy, kind: intervals}",
      "{id: macro, kind: intervals, average: macro}",
      "{id: neighbours, kind: mcnemar, family: adjacent, intervals: simultaneous}",
      f"{{id: rules, kind: sensitivity, pairs: [[{short(best[0])}, {short(best[1])}], [{short(best[1])}, {short(best[2])}]]}}",
      f"{{id: where, kind: subgroups, model: {short(best[0])}, baseline: {short(best[1])}}}",
      f"{{id: alone, kind: subgroups, model: {short(best[0])}}}",
    ], thresholds=f"""thresholds:
  checks:
    - {{id: floor, analysis: accuracy, metric: accuracy, model: {short(best[0])}, at_least: 0.85}}
    - {{id: ahead, analysis: neighbours, metric: difference, model: {short(best[0])}, baseline: {short(best[1])}, above: 0.0}}
""")
    print(time.time()-t, done.code)
    import shutil; shutil.copytree(done.folder, "/tmp/redux_out", dirs_exist_ok=True)
