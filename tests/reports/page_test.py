#!/usr/bin/env python3
"""Tests the HTML report of a whole catalogue in headless Chromium: size, errors, requests, two clicks to a failing
case, search, keyboard, phone and dark mode. Leaves screenshots.

page_test.py CATALOGUE SCREENSHOTS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

from devtools import Browser, find_browser

catalogue, pictures = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
passed, failed = 0, 0


def check(condition, text):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print("FAILED:", text, flush=True)


def quiet(browser, url, what):
    check(browser.complaints() == [], f"{what}: {browser.complaints()}")
    check(browser.requests() == [url], f"{what}: fetched {browser.requests()}")


def fits(browser, what, width=1280):
    """Checks that the page fits the width, and that the last column of the widest table can be scrolled into its box.
    """
    check(browser.run("document.documentElement.scrollWidth") <= width, f"{what}: the page is wider than {width} px")
    last = browser.run("""(() => {
      const table = [...document.querySelectorAll('table')].sort((a, b) => b.rows[0].cells.length - a.rows[0].cells.length)[0];
      const cell = table.rows[0].cells[table.rows[0].cells.length - 1];
      cell.scrollIntoView({inline: "end"});
      const box = cell.getBoundingClientRect();
      scrollTo(0, 0);
      return [box.left, box.right]; })()""")
    check(0 <= last[0] and last[1] <= width, f"{what}: the last column is at {last}")


def the_checks_see(browser, folder):
    """Checks that the checks detect a page with an error, a request and excess width."""
    page = folder / "bad.html"
    page.write_text('<body style="width:9000px"><img src="http://127.0.0.1:9/x.png"><script>undefined_function()</script><p id="under">x</p>'
                    '<div style="position:fixed;inset:0"></div>')
    browser.open(page.as_uri())
    check(any("undefined_function" in c for c in browser.complaints()), "an error of a script is seen")
    check("http://127.0.0.1:9/x.png" in browser.requests(), "a request is seen")
    check(browser.run("document.documentElement.scrollWidth > window.innerWidth"), "too much width is seen")
    try:
        browser.click("document.getElementById('under')")
        check(False, "a click on something covered is refused")
    except AssertionError:
        check(True, "")


DIALOG = "document.querySelector('dialog[open]')"
ROWS = "document.querySelectorAll('.op:not([hidden]) tbody tr:not([hidden])').length"


def drawn(browser):
    """Returns the colours in the first heat map."""
    return browser.run("""(() => { const c = document.querySelector('dialog .map canvas'); if (!c) return 0;
      const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, s = new Set();
      for (let i = 0; i < d.length; i += 4) if (d[i + 3]) s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]);
      return s.size; })()""")


def two_clicks(browser, url, report):
    browser.open(url)
    quiet(browser, url, "the page")
    fits(browser, "the page")
    browser.screenshot(pictures / "light.png")
    check(browser.run(ROWS) == len(report["kernels"]), "every kernel has a row")
    browser.click("[...document.querySelectorAll('#statuses button')].find(b => b.textContent.includes('Falsified'))")
    check(browser.run(ROWS) == report["totals"]["falsified"], "the first click leaves what is falsified")
    browser.screenshot(pictures / "falsified.png")
    browser.click("document.querySelector('.op:not([hidden]) tbody tr:not([hidden]) td button.falsified')")
    text = browser.run(f"{DIALOG}?.innerText ?? ''")
    wrong = [(k, o) for k in report["kernels"] for o in k["obligations"] if o["verdict"] == "falsified" and k["kernel"] in text]
    check(len(wrong) > 0, "the second click opens a failing case")
    kernel, obligation = wrong[0]
    example = obligation["counterexample"]
    claim, suspect = obligation["claim"], obligation["if_fails"]
    # All elements were written, and a value is wrong.
    if obligation["by"] == "frame" and example["finding"]["kind"] != "not written":
        claim, suspect = "every element is right", "the formula, an index or the precision"
    for key, part in {"claim": claim, "suspect": suspect, "case": example["says"], "message": example["finding"]["message"],
                      "replay": "assay replay " + example["file"], "source": f"{kernel['source']}:{kernel['line']}"}.items():
        check(part in text, f"the details lack the {key}: {part}")
    quiet(browser, url, "the details")
    # Find a finding with heat maps of both cases; clicking in the list of findings is one click from the start.
    both = next(k["kernel"] for k in report["kernels"] for o in k["obligations"] if "drawn_errors" in o.get("counterexample", {}))
    browser.open(url)
    browser.click(f"[...document.querySelectorAll('#finding-list button')].find(b => b.textContent.includes('{both}'))")
    check(drawn(browser) >= 1, "a heat map is drawn")
    check(browser.run("document.querySelectorAll('dialog .map canvas').length") == 2, "of the shrunk and of the drawn case")
    browser.screenshot(pictures / "details.png")
    browser.run("document.querySelectorAll('dialog figure')[1].scrollIntoView()")
    browser.screenshot(pictures / "heat-map.png")
    browser.run("document.querySelectorAll('dialog .map canvas')[1].focus()")
    browser.key("ArrowRight")
    check("row 0" in browser.run("document.querySelectorAll('dialog .readout')[1].textContent"), "arrows read the heat map")
    address = browser.run("location.href")
    title = browser.run(f"{DIALOG}.innerText")
    browser.click("[...document.querySelectorAll('dialog [data-step]')].find(b => !b.disabled)")
    check(browser.run(f"{DIALOG}.innerText") != title, "from one finding to the next")
    browser.key("Escape")
    check(not browser.run(f"!!{DIALOG}"), "Escape closes the details")
    browser.open(address)
    check(both in browser.run(f"{DIALOG}?.innerText ?? ''"), "a link leads to the same details")


def search(browser, url, report):
    browser.open(url)
    browser.key("/", "/")
    check(browser.run("document.activeElement.id") == "search", "a slash leads to the search")
    browser.type("Transpose/ naive")
    expected = [k["kernel"] for k in report["kernels"] if "transpose/" in k["kernel"] and "naive" in k["kernel"]]
    check(0 < len(expected) == browser.run(ROWS), f"the search finds {len(expected)} kernels, not {browser.run(ROWS)}")
    browser.type(" nowhere to be found")
    check(browser.run(ROWS) == 0 and browser.run("!document.getElementById('nothing').hidden"), "what is not there is not found")
    browser.click("document.getElementById('clear')")
    check(browser.run(ROWS) == len(report["kernels"]), "everything comes back")
    for name, value, key in (("backend", "vulkan", "backend"), ("op", "softmax", "op")):
        browser.run(f"document.getElementById('{name}').value = '{value}'; document.getElementById('{name}').dispatchEvent(new Event('change'))")
        check(browser.run(ROWS) == sum(k[key] == value for k in report["kernels"]), f"only {value} is shown")
        browser.run("document.getElementById('clear').click()")
    browser.run("document.querySelector('.op tbody button').focus()")
    browser.key("ArrowRight")
    check(browser.run("document.activeElement.parentElement.cellIndex") == 1, "arrows move in the matrix")
    browser.key("Enter", "\r")
    check(browser.run(f"!!{DIALOG}"), "Enter opens a cell")
    quiet(browser, url, "searching")


def looks(browser, url, report):
    background = "getComputedStyle(document.body).backgroundColor"
    browser.open(url)
    light = browser.run(background)
    browser.open(url, dark=True)
    check(browser.run(background) != light, "dark mode is dark")
    browser.screenshot(pictures / "dark.png")
    first = "document.querySelector('#finding-list button')"
    browser.click(first)
    browser.screenshot(pictures / "dark-details.png")
    for dark in (False, True):
        browser.open(url, 390, 844, dark, phone=True)
        quiet(browser, url, "on a phone")
        fits(browser, "on a phone", 390)
        browser.screenshot(pictures / f"phone{'-dark' if dark else ''}.png")
        browser.run("document.querySelector('.box').scrollIntoView()")
        browser.screenshot(pictures / f"phone-matrix{'-dark' if dark else ''}.png")
        browser.click(first)
        fits(browser, "details on a phone", 390)
        box = browser.run(f"(b => [b.x, b.right])({DIALOG}.getBoundingClientRect())")
        check(box == [0, 390], f"details fill a phone: {box}")
        check(browser.run(f"{DIALOG}.scrollWidth <= {DIALOG}.clientWidth"), "details need no sideways scrolling")
        browser.screenshot(pictures / f"phone-details{'-dark' if dark else ''}.png")


def main():
    path = find_browser()
    if path is None:
        print("skipped: no Chromium here (ci/setup installs chromium-headless-shell)")
        sys.exit(77)
    pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="assay-page-") as name:
        folder = pathlib.Path(name)
        made = subprocess.run([catalogue, folder], capture_output=True, text=True)
        check(made.returncode == 0, f"the catalogue: {made.stdout}{made.stderr}")
        report = json.loads((folder / "report.json").read_text())
        page = folder / "report.html"
        size = page.stat().st_size
        check(size < 2_000_000 and len(report["kernels"]) > 200, f"the page of {len(report['kernels'])} kernels has {size} bytes")
        browser = Browser(path)
        try:
            the_checks_see(browser, folder)
            for part in (two_clicks, search, looks):
                part(browser, page.as_uri(), report)
            browser.open(page.as_uri())
            print(f"{len(report['kernels'])} kernels, {size / 1e6:.2f} MB, loaded in {browser.load_seconds:.2f} s, screenshots in {pictures}")
        finally:
            browser.close()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
