"""Headless Chromium for the tests of the page: one browser, of any width, light, dark or printing."""
import base64
import io
import os

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--disable-dev-shm-usage"]
# Only the sans-serif fonts of Debian's fonts-dejavu-core, even if others are installed.
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir>/usr/share/fonts/truetype/dejavu</dir><cachedir>{folder}/fonts</cachedir>
<selectfont><rejectfont><glob>*Serif*</glob></rejectfont></selectfont>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
<match target="pattern"><edit name="family" mode="append_last"><string>DejaVu Sans</string></edit></match></fontconfig>
"""


class Browser:
    def __init__(self, chromium, driver, folder):
        fonts = os.path.join(folder, "fonts.conf")
        with open(fonts, "w", encoding="utf-8") as file:
            file.write(FONTS.format(folder=folder))
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in [*FLAGS, f"--user-data-dir={folder}/profile"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        environment = {**os.environ, "FONTCONFIG_FILE": fonts, "HOME": folder, "LC_ALL": "C.UTF-8"}
        self.driver = webdriver.Chrome(service=Service(driver, env=environment), options=options)

    def quit(self):
        self.driver.quit()

    def open(self, path):
        self.driver.get("file://" + path)

    def show(self, width, mode):
        """`mode`: light, dark or print."""
        self.command("Emulation.setEmulatedMedia", media="print" if mode == "print" else "screen", features=[
            {"name": "prefers-color-scheme", "value": "dark" if mode == "dark" else "light"}])
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        # The page gets its new width before the next frame.
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def console(self):
        """Messages on the console since the last call, exceptions, violations of the page's policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, x, y, width, height):
        clip = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        answer = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")

    def printed(self):
        return base64.b64decode(self.command("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"])
