#!/usr/bin/env bash
# wheel.sh PYTHON BUILD: packs the build and tests the wheel in a clean environment. PYTHON has the packages of
# python/requirements-test.txt: nothing is downloaded.
cd "$(dirname "$0")/../.."
. scripts/common.sh

pack_wheel "$1" "$2"
# From that environment only pytest: tests of its other packages run elsewhere.
pytest_folder=$(mktemp -d)
trap 'rm -rf "$pytest_folder"' EXIT
packages=$("$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
ln -s "$packages"/{pytest,_pytest,pluggy,iniconfig,packaging,pygments,py.py,pluggy-*.dist-info,pytest-[0-9]*.dist-info} "$pytest_folder"
TIDEMARK_BUILD=$2 TIDEMARK_PYTEST_FOLDER=$pytest_folder scripts/check_wheel.sh "$2"/wheel/*.whl "$1"
