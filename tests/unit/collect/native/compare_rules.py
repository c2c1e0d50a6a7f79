"""Compares the unwinder's rules for a library with readelf's for the same .eh_frame.

usage: compare_rules.py PRINT_RULES READELF LIBRARY

Every row of readelf's table is compared, at its first and its last address. Rows that readelf prints as an expression ("exp") are
compared only as far as readelf prints them: they may not be a plain rule except in a PLT.
"""
import re
import subprocess
import sys

SKIP = 77


def library_path(print_rules, library):
    result = subprocess.run([print_rules, library], input="", capture_output=True, text=True)
    if result.returncode == SKIP:
        print(result.stderr.strip())
        sys.exit(SKIP)
    return result.stdout.splitlines()[0]


def readelf_rows(readelf, path):
    """Yields (pc, end of the function, cfa, rbp, ra, signal) for each row, "u" or None for a register not mentioned."""
    text = subprocess.run([readelf, "--debug-dump=frames-interp", "-W", path], capture_output=True, text=True,
                          env={"LC_ALL": "C"}).stdout  # its exit status is also nonzero for missing debug files
    columns, signal, cie_signal, covered = None, False, {}, (0, 0)
    for line in text.splitlines():
        entry = re.match(r"^([0-9a-f]{8,}) [0-9a-f]+ [0-9a-f]+ (CIE|FDE)(.*)$", line)
        if entry:
            columns = None
            if entry[2] == "CIE":
                cie_signal[entry[1]] = "S" in (re.search(r'"([^"]*)"', entry[3]) or ["", ""])[1]
                covered = (0, 0)
            else:
                signal = cie_signal.get(re.search(r"cie=([0-9a-f]+)", entry[3])[1], False)
                covered = tuple(int(x, 16) for x in re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", entry[3]).groups())
        elif line.lstrip().startswith("LOC"):
            columns = line.split()
        elif columns and re.match(r"^[0-9a-f]{8,} ", line):
            # "r10 (r10)" is one value of two words.
            values = dict(zip(columns, re.sub(r" \(\w+\)", "", line).split()))
            pc = int(values["LOC"], 16)
            if covered[0] <= pc < covered[1]:
                yield pc, covered[1], values["CFA"], values.get("rbp"), values.get("ra"), signal


def expected_rule(cfa, rbp, ra):
    """The rule in the format of print_rules, or None if readelf does not print enough."""
    if ra != "c-8":
        return ("end",) if ra in ("u", None) or re.match(r"^(c[+-]|r)", ra) else None
    plain = re.match(r"^(rsp|rbp|r\w+)([+-]\d+)$", cfa)
    if not plain:
        return None
    base, offset = plain[1], int(plain[2])
    if base not in ("rsp", "rbp"):
        return ("end",)
    kind = "sp" if base == "rsp" else "fp"
    if rbp in ("u", "s", None):
        return (kind, str(offset), "same", "0")
    slot = re.match(r"^c-(\d+)$", rbp)
    if slot and int(slot[1]) <= 8 * 63:
        return (kind, str(offset), "cfa", str(int(slot[1]) // 8))
    return None if rbp == "exp" else (kind, str(offset), "unknown", "0")


def main():
    print_rules, readelf, library = sys.argv[1:]
    path = library_path(print_rules, library)
    starts = {}
    for pc, end, *rest in readelf_rows(readelf, path):
        starts[pc] = (end, rest)  # of several rows at one address the last one applies
    rows = {pc: rest for pc, (_, rest) in starts.items()}
    for (pc, (end, rest)), following in zip(sorted(starts.items()), sorted(starts)[1:] + [1 << 64]):
        rows[min(end, following) - 1] = rest
    answer = subprocess.run([print_rules, library], input="\n".join(f"{pc:x}" for pc in rows), capture_output=True,
                            text=True, check=True).stdout.splitlines()[1:]
    compared = unsure = failures = 0
    followed = {}
    for line, (pc, (cfa, rbp, ra, signal)) in zip(answer, rows.items(), strict=True):
        address, *rule = line.split()
        assert int(address, 16) == pc
        if signal:
            expected = ("signal", "0", "unknown", "0")
        else:
            expected = expected_rule(cfa, rbp, ra)
        if expected is None:
            unsure += 1
            followed[rule[0]] = followed.get(rule[0], 0) + 1
            continue
        compared += 1
        if tuple(rule[: len(expected)]) != expected:
            failures += 1
            if failures <= 10:
                print(f"{path} {pc:#x}: readelf has CFA={cfa} rbp={rbp} ra={ra}, expected {expected}, got {rule}")
    print(f"{path}: {compared} rows compared, {failures} differ; {unsure} not told by readelf: {followed}")
    # A library without rows would compare nothing and prove nothing.
    sys.exit(1 if failures or compared < 100 else 0)


main()
