#!/usr/bin/env bash
# Installs a wheel in an empty environment, and tests it there: the command, and the package's tests that need no PyTorch.
#
#   scripts/check_wheel.sh WHEEL [PYTHON...]       in a virtual environment of each interpreter (default: the python3.9 … of PATH)
#   scripts/check_wheel.sh WHEEL --debian SUITE    in a separate Debian, e.g. bullseye (needs root; debootstrap makes it below
#                                                  TIDEMARK_CACHE)
#
# TIDEMARK_BUILD          a build with tests, such as build/release: it writes the recordings that reading is tested with
# TIDEMARK_PYTEST_FOLDER  a folder of Python packages with pytest; by default one below TIDEMARK_CACHE, filled from PyPI
cd "$(dirname "$0")/.."
. scripts/common.sh

wheel=${1:-}
[[ -f $wheel ]] || fail "name a wheel; scripts/wheel.sh makes one"
shift
cache=${TIDEMARK_CACHE:-${HOME:-/root}/.cache/tidemark}

# The newest pytest for Python 3.9; pip resolves dependencies for the interpreter that runs pip.
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
pytest_folder=${TIDEMARK_PYTEST_FOLDER:-$cache/pytest-8.4.2}
[[ -d $pytest_folder ]] || /usr/bin/python3 -m pip install -q --target "$pytest_folder" --python-version 3.9 --only-binary :all: \
  pytest==8.4.2 exceptiongroup tomli typing_extensions

# The tests and their data, without the sources of the package.
work=$(mktemp -d)
trap 'rm -rf "$work" "${debian:-$work}/check"' EXIT
mkdir -p "$work"/check/{python,recordings,tests/data}
cp "$wheel" pyproject.toml "$work/check/"
cp -r python/tests "$work/check/python/"
cp -r tests/data/snapshots "$work/check/tests/data/"
[[ -z ${TIDEMARK_BUILD:-} ]] || "$TIDEMARK_BUILD/tests/bin/golden_recordings" "$work/check/recordings"
cat >"$work/check/run.sh" <<'END'
set -euo pipefail  # run.sh PYTHON PYTEST_FOLDER
cd "$(dirname "$0")"
rm -rf environment
"$1" -m venv environment
environment/bin/python -m pip install -q --no-index --no-deps ./*.whl
environment/bin/python -c 'import platform, tidemark; print(*platform.libc_ver(), "CPython", platform.python_version(), tidemark.__file__)'
PATH=$PWD/environment/bin:$PATH
tidemark --version
tidemark summary tests/data/snapshots/default.pickle.xz >summary.txt
head -3 summary.txt
[[ -z $(ls recordings) ]] || export TIDEMARK_RECORDINGS=$PWD/recordings
unset TIDEMARK_BUILD
PYTHONPATH=$2 python -B -m pytest -q -p no:cacheprovider python/tests
END

if [[ ${1:-} == --debian ]]; then
  debian=$cache/debian-$2
  if [[ ! -e $debian/complete ]]; then
    command -v debootstrap >/dev/null || fail "needs debootstrap (apt-get install debootstrap)"
    say "installing Debian $2 into $debian"
    rm -rf "$debian"
    debootstrap --variant=minbase --include=python3-venv "$2" "$debian" >"$cache/debian-$2.log" || fail "see $cache/debian-$2.log"
    touch "$debian/complete"
  fi
  rm -rf "$debian/check"
  cp -r "$work/check" "$debian/check"
  cp -rL "$pytest_folder" "$debian/check/pytest"
  say "Debian $2"
  # shellcheck disable=SC2016  # of the shell inside, whose /proc goes with it
  unshare --mount bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$debian" \
    env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 bash /check/run.sh /usr/bin/python3 /check/pytest
  exit
fi

pythons=("$@")
if [[ ${#pythons[@]} == 0 ]]; then mapfile -t pythons < <(compgen -c python3. | grep -xE 'python3\.[0-9]+' | sort -uV); fi
for python in "${pythons[@]}"; do
  say "$("$python" --version), $python"
  env -u PYTHONPATH bash "$work/check/run.sh" "$python" "$pytest_folder"
done
