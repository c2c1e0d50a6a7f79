"""A terminal to run programs in: a window of tmux, with its screen as text and keys as typed."""

import subprocess
import tempfile
import time
from pathlib import Path

DEADLINE = 60.0  # seconds; reached only on failure


def until(look, done, what):
    """The result of `look()`, once `done` of it is true; it is called repeatedly. Fails with `what` was waited for."""
    end = time.monotonic() + DEADLINE
    while not done(seen := look()):
        assert time.monotonic() < end, f"waited for {what}:\n{seen}"
        time.sleep(0.03)
    return seen


class Terminal:
    """A window with a shell in it. One tmux server for each, so that tests are independent."""

    def __init__(self, width, height, environment):
        self.folder = tempfile.TemporaryDirectory(prefix="tidemark-terminal-")
        self.socket = str(Path(self.folder.name) / "tmux")
        shell = ["env", *(f"{name}={value}" for name, value in environment.items()), "bash", "--norc", "--noprofile", "-i"]
        self._tmux("new-session", "-d", "-x", str(width), "-y", str(height), *shell)
        # Whatever TERM says, it is tmux.
        self.type("PS1='ready% '; clear() { printf '\\033[H\\033[2J'; }; clear\n")
        self.wait_for("ready%", gone="PS1")

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, capture_output=True)
        self.folder.cleanup()

    def _tmux(self, *arguments):
        command = ["tmux", "-u", "-S", self.socket, "-f", "/dev/null", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def type(self, text):
        """As if it were typed."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys):
        """Keys by tmux's names: Enter, Up, C-c."""
        self._tmux("send-keys", *keys)

    def resize(self, width, height):
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def screen(self, styles=False):
        """Its lines as text, without spaces at their ends; `styles`: with the sequences that colour them."""
        return self._tmux("capture-pane", "-p", *(["-e"] if styles else []))

    def says(self, what):
        """A value of the window, by tmux's name."""
        return self._tmux("display-message", "-p", "#{" + what + "}").strip()

    def wait_for(self, *texts, gone=None):
        """Waits until the screen has all of these texts, and `gone` no more. Returns the screen."""

        def done(screen):
            return all(text in screen for text in texts) and (gone is None or gone not in screen)

        return until(self.screen, done, f"{texts}, without {gone!r}")
