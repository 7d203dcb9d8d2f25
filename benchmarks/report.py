"""How long does a report take from finished scoring to verification?  On the demonstration's run directory; imports included."""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import ROOT, child_seconds, conclude, evalspec, median_child_seconds

DEMO = ROOT / "reports" / "demo"
TRUST = ROOT / "reports" / "demo.trust.yaml"


def main() -> None:
    """Measure composing, rendering, sealing, verifying and recomputing."""
    if not (DEMO / "manifest.dsse.json").is_file():
        sys.exit("run `make demo` first: the benchmark works on reports/demo")
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "demo"
        shutil.copytree(DEMO, copy)
        without_pdf = median_child_seconds(evalspec("report", str(copy), "--no-pdf", "--quiet", "--throwaway-key"), runs=3, expected=1)
        whole = child_seconds(evalspec("report", str(copy), "--quiet", "--throwaway-key"), expected=1)
    figures = {
        "html_and_seal_s": round(without_pdf, 2),
        "pdf_s": round(whole - without_pdf, 2),
        "verify_s": round(median_child_seconds(evalspec("verify", str(DEMO), "--trust", str(TRUST)), runs=3), 2),
        "recompute_s": round(median_child_seconds(evalspec("verify", str(DEMO), "--trust", str(TRUST), "--recompute"), runs=3), 2),
        "pages": _pages(),
        "limit_s": {"pdf": 8, "verify": 2},
        "peak_mib": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024),
        "agree": True,
    }
    conclude("report", "HTML, PDF, seal, verify, recompute of reports/demo; imports included", figures)


def _pages() -> int:
    from pypdf import PdfReader

    return len(PdfReader(DEMO / "report.pdf").pages)


if __name__ == "__main__":
    main()
