"""Headless Chromium driven over a pipe: real pages, real clicks, standard library only."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_browser():
    """Returns the path of a Chromium, or None."""
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


class Browser:
    """One page of one browser, with its messages and requests."""

    def __init__(self, path):
        self.folder = tempfile.mkdtemp(prefix="assay-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def hand_over():  # the browser reads commands from 3 and writes answers to 4
            os.dup2(to_browser, 10)
            os.dup2(from_browser, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)

        self.process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             "--disable-dev-shm-usage", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=hand_over)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.read_end], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser did not answer")
            chunk = os.read(self.read_end, 1 << 20)
            if not chunk:
                raise EOFError("the browser has ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, url, width=1280, height=900, dark=False, phone=False):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.send("Page.navigate", url="about:blank")  # so that a changed fragment also loads a new page
        self.settle()
        self.events = []
        begin = time.monotonic()
        self.send("Page.navigate", url=url)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())
        self.load_seconds = time.monotonic() - begin
        self.settle()

    def settle(self):
        """Waits until the requested content has been drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def run(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def complaints(self):
        """Returns script errors and console messages of level warning or error."""
        found = []
        for e in self.events:
            if e["method"] == "Runtime.exceptionThrown":
                found.append(e["params"]["exceptionDetails"].get("exception", {}).get("description", "exception"))
            if e["method"] == "Log.entryAdded" and e["params"]["entry"]["level"] in ("warning", "error"):
                found.append(e["params"]["entry"]["text"])
            if e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] in ("warning", "error", "assert"):
                found.append(str(e["params"]["args"]))
        return found

    def requests(self):
        """Returns the URLs of all requests, including failed ones."""
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def click(self, find):
        """Clicks on the element found by the expression; it must be visible and topmost there."""
        box = self.run(f"""(() => {{
          const e = {find};
          if (!e) return null;
          e.scrollIntoView({{block: "center", inline: "center"}});
          const b = e.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;
          const top = document.elementFromPoint(x, y);
          return {{x, y, hit: top === e || e.contains(top), width: b.width, height: b.height}};
        }})()""")
        if not box or not box["hit"]:
            raise AssertionError(f"cannot be clicked: {find} ({box})")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box["x"], y=box["y"], button="left", clickCount=1)
        self.settle()

    def key(self, key, text=""):
        codes = {"Escape": 27, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40, "ArrowLeft": 37, "ArrowUp": 38, "Tab": 9}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes.get(key, 0),
                      **({"text": text} if text and kind == "keyDown" else {}))
        self.settle()

    def type(self, text):
        self.send("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        self.settle()
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))
