"""Sources of PyTorch's test suites and their dependencies. Both are cached below TIDEMARK_CACHE."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("TIDEMARK_CACHE") or Path.home() / ".cache/tidemark")
DEBIAN = "http://deb.debian.org/debian"


def fail(message):
    print(f"pytorch_suites.py: {message}", file=sys.stderr)
    sys.exit(2)


def tests(version):
    """The folder of the tests of Debian's source package, unpacked once. Returns its path."""
    folder = CACHE / f"pytorch-tests-{version}"
    if (folder / "test").is_dir():
        return folder / "test"
    print(f"fetching the tests of PyTorch {version} from {DEBIAN}", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "apt"
    for below in ("lists/partial", "cache/archives/partial"):
        (state / below).mkdir(parents=True, exist_ok=True)
    key = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (state / "sources.list").write_text(
        "".join(f"deb-src [signed-by={key}] {DEBIAN} {suite} main\n" for suite in ("bookworm", "trixie", "sid"))
    )
    options = [f"-oDir::Etc::sourcelist={state}/sources.list", "-oDir::Etc::sourceparts=-", f"-oDir::State::lists={state}/lists",
               f"-oDir::Cache={state}/cache"]
    subprocess.run(["apt-get", "-qq", *options, "update"], check=True)
    shown = subprocess.run(["apt-cache", *options, "showsrc", "pytorch"], check=True, capture_output=True, text=True).stdout
    offered = [line.split()[1] for line in shown.splitlines() if line.startswith("Version: ")]
    found = [full for full in offered if full.split("+")[0] == version]
    if not found:
        fail(f"Debian has no source package of PyTorch {version} (it has {', '.join(offered)}); give a folder with --tests")
    # The tests are in the archive itself; Debian's patches to it are not needed.
    subprocess.run(["apt-get", "-qq", *options, "source", "--download-only", f"pytorch={found[-1]}"], cwd=folder, check=False)
    archives = list(folder.glob("pytorch_*.orig.tar.*"))
    if not archives:
        fail(f"cannot download the source package of PyTorch {version}")
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        subprocess.run(["tar", "-xf", archives[0], "-C", unpacked, "--wildcards", "*/test", "--strip-components=1"], check=True)
        os.rename(Path(unpacked) / "test", folder / "test")
    archives[0].unlink()
    return folder / "test"


def libraries(python):
    """A folder with the dependencies of PyTorch's test library that PyTorch does not contain."""
    folder = CACHE / "pytorch-tests-libraries"
    if not (folder / "expecttest").is_dir():
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
            pip = [python, "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--target", folder, "expecttest"], check=True)
    return folder
