"""In a real browser the page fits its window, can be read in light and dark, used with the keyboard alone, and breaks no rule of axe-core."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalspec.analyses.catalogue import built_in
from evalspec.artifacts.study import AnalysisRequest
from evalspec.protocols import Context
from evalspec.reporting.documents import Documents
from evalspec.reporting.templates import asset, make_environment
from evalspec.testing import sample_responses

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 180
WIDTHS = {"phone": 400, "desk": 1400}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed, so the page was not looked at in a browser"),
]

STICKING_OUT = """(() => {
  const root = document.documentElement;
  const inside = [...document.querySelectorAll('body *')].filter(element => !element.closest('.scroll, .skip, .quiet'));
  const outside = inside.filter(element => element.getBoundingClientRect().right > root.clientWidth + 1);
  return [root.scrollWidth, root.clientWidth, outside.map(element => element.outerHTML.slice(0, 200))];
})()"""

FOCUSED = """(() => {
  const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  return [at.tagName, at.getAttribute('href') || at.getAttribute('aria-label') || at.className,
    at.matches(':focus-visible') && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth];
})()"""

# Rows and questions beyond these repeat the form of others; axe-core takes seconds for each thousand elements.
WITHOUT_REPETITION = """(() => {
  const repeated = [...document.querySelectorAll('tbody tr:nth-child(n+10)'), ...[...document.querySelectorAll('.sample')].slice(3)];
  repeated.forEach(element => element.remove());
  return document.querySelectorAll('body *').length;
})()"""

REACHABLE = "[...document.querySelectorAll('a[href], [tabindex=\"0\"]')].filter(element => element.checkVisibility()).length"


class Browser:
    """Chromium over its debugging pipe (descriptors 3 and 4; messages of JSON that end in a zero byte), without a network."""

    def __init__(self, folder: Path) -> None:
        for_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        shell = ["bash", "-c", f'exec "$@" 3<&{for_browser} 4>&{from_browser}', "browser", *command]
        self._process = subprocess.Popen(
            shell, pass_fds=(for_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        os.close(for_browser)
        os.close(from_browser)
        self._number, self._unread, self._session = 0, b"", ""
        target = next(one for one in self.send("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.send("Network.enable")
        self.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | ({"sessionId": self._session} if self._session else {})
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._write, content) :]
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            received = os.read(self._read, 1 << 20) if ready else b""
            assert received, f"the browser did not answer {method}"
            self._unread += received
        first, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(first))

    def open(self, html: str, folder: Path, *, width: int, scheme: str = "light") -> None:
        """Show a page from a file, in a window of that width, in light or dark."""
        path = folder / "page.html"
        path.write_text(html, encoding="utf-8")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 700)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.send("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + SECONDS
        while self.value("document.readyState + location.pathname") != f"complete{path.as_posix()}":
            assert time.monotonic() < deadline, "the page did not load"
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """Return what an expression comes to in the page; scripts of the page itself stay forbidden."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press_tab(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=20)
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.mark.parametrize("window", WIDTHS)
def test_nothing_sticks_out_of_the_window(window: str, browser: Browser, html: str, tmp_path: Path) -> None:
    browser.open(html, tmp_path, width=WIDTHS[window])
    scroll, client, outside = browser.value(STICKING_OUT)
    assert outside == []
    assert scroll <= client <= WIDTHS[window]
    assert client > WIDTHS[window] - 20


def subjects_of_six() -> str:
    """Accuracies by subject of six models with long names, as they stand in a report."""
    analysis, responses = built_in()["intervals"], sample_responses(models=6)
    result = analysis.compute(responses, analysis.options(kind="intervals"), Context(rng=np.random.default_rng(1)))
    request = AnalysisRequest(id="it", kind="intervals", benchmarks=tuple(one.benchmark for one in responses.benchmarks), options={})
    environment = make_environment(Documents({"findings.json": {"findings": [{"result": json.loads(result.model_dump_json())}]}}))
    body = environment.get_template(analysis.template).render(request=request, result=result, at="/findings/0", estimates=(), figure="")
    body = body.replace("model-", "a-long-name-of-model-")
    head = '<!DOCTYPE html><meta name="viewport" content="width=device-width, initial-scale=1">'
    return f"{head}<style>{asset('style.css')}</style><div class=page><main><div class=rest><section>{body}</section></div></main></div>"


TOO_WIDE = """[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.ariaLabel)"""
CAPTIONS_CUT = """[...document.querySelectorAll('.scroll')].filter(
  one => one.querySelector('caption').getBoundingClientRect().right > one.getBoundingClientRect().right + 1).map(one => one.ariaLabel)"""
BY_SUBJECT = "[...document.querySelectorAll('.scroll')].find(one => one.ariaLabel.includes('by subject'))"


@pytest.mark.parametrize("width", [1280, 1400])
def test_a_table_of_six_models_by_subject_fits_a_desk(width: int, browser: Browser, tmp_path: Path) -> None:
    browser.open(subjects_of_six(), tmp_path, width=width)
    assert browser.value(f"{BY_SUBJECT}.querySelectorAll('thead th').length") == 7
    assert browser.value(TOO_WIDE) == []
    assert browser.value(CAPTIONS_CUT) == []


def test_a_table_that_goes_on_beyond_the_edge_is_shaded_there_until_its_end(browser: Browser, tmp_path: Path) -> None:
    browser.open(subjects_of_six(), tmp_path, width=WIDTHS["phone"])
    assert browser.value(TOO_WIDE) != []
    assert browser.value(CAPTIONS_CUT) == []

    def edges() -> list[str]:
        left, right, top = browser.value(f"(box => [box.left, box.right, box.top + scrollY + 1])({BY_SUBJECT}.getBoundingClientRect())")
        pixels = [{"x": x, "y": top, "width": 2, "height": 2, "scale": 1} for x in (left, right - 2)]
        return [browser.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=pixel)["data"] for pixel in pixels]

    bare, shaded = edges()
    assert bare != shaded
    browser.value(f"{BY_SUBJECT}.scrollLeft = 10_000")
    shaded, again = edges()
    assert again == bare
    assert shaded != bare


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="axe-core-python is not installed")
@pytest.mark.parametrize(("window", "scheme"), [("phone", "light"), ("desk", "dark")])
def test_axe_finds_nothing_that_keeps_people_out(window: str, scheme: str, browser: Browser, html: str, tmp_path: Path) -> None:
    browser.open(html, tmp_path, width=WIDTHS[window], scheme=scheme)
    assert browser.value(WITHOUT_REPETITION) > 1000
    browser.value(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8") + ";0")
    found = browser.value("axe.run(document, {resultTypes: ['violations']})")
    said = [f"{one['id']}: {one['help']}: {node['html'][:160]}" for one in found["violations"] for node in one["nodes"]]
    assert said == []
    assert {"color-contrast", "heading-order", "td-headers-attr", "skip-link"} <= {one["id"] for one in found["passes"]}


def test_the_keyboard_alone_reaches_everything_and_shows_where_it_is(browser: Browser, html: str, tmp_path: Path) -> None:
    browser.open(html, tmp_path, width=WIDTHS["desk"])
    stops = []
    for _ in range(min(60, browser.value(REACHABLE))):
        browser.press_tab()
        stops.append(browser.value(FOCUSED))
    assert stops[0][:2] == ["A", "#decision"]
    assert [stop for stop in stops if not (stop[2] and stop[3])] == []
    assert len({(stop[0], stop[1]) for stop in stops}) > 40


def test_the_page_runs_no_script(browser: Browser, html: str, tmp_path: Path) -> None:
    forged = html.replace("</main>", "<script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\"></main>")
    browser.open(forged, tmp_path, width=WIDTHS["desk"])
    assert browser.value("document.title") != "ran"
