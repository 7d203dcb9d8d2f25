"""In a browser the page fits its window, on a phone and on a desk."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# A browser's window has a least width, a frame has none. The frame's page runs no script; the outer page measures it.
FRAME = """<!DOCTYPE html><iframe style="border:0" width="{width}" height="1200" srcdoc="{page}"></iframe><script>
addEventListener('load', () => {{
  const page = document.querySelector('iframe').contentDocument;
  const root = page.documentElement;
  const inside = [...page.querySelectorAll('body *')].filter(element => !element.closest('.scroll, .skip, .quiet'));
  const outside = inside.filter(element => element.getBoundingClientRect().right > root.clientWidth + 1);
  document.documentElement.setAttribute('data-measured', [root.scrollWidth, root.clientWidth, outside.length].join(' '));
}});
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed, so the page's width was not measured")
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_sticks_out_of_the_window(width: int, html: str, tmp_path: Path) -> None:
    outer = tmp_path / "outer.html"
    outer.write_text(FRAME.format(width=width, page=escape(html)), encoding="utf-8")
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync", "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1500,1300",
        "--dump-dom", outer.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    measured = re.search(r'data-measured="(\d+) (\d+) (\d+)"', done.stdout)
    assert measured, "the page was not measured"
    assert int(measured[1]) <= int(measured[2]) <= width
    assert int(measured[2]) > width - 20
    assert int(measured[3]) == 0
