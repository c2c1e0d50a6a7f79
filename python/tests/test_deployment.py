"""What runs Tidemark on clusters: scripts for Slurm, manifests for Kubernetes, dashboards, and the commands of their page."""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
SHARE = ROOT / "share"
SLURM = SHARE / "slurm"
KUBERNETES = SHARE / "kubernetes"
PAGE = ROOT / "docs" / "deployment.md"
PROGRAM = Path(os.environ.get("TIDEMARK_BUILD", "")) / "bin" / "tidemark"

needs_program = pytest.mark.skipif("TIDEMARK_BUILD" not in os.environ, reason="TIDEMARK_BUILD is not set: no program")


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((KUBERNETES / name).read_text()))


def lines_of(text: str) -> Iterator[str]:
    """Lines of a shell, with continued ones joined."""
    yield from re.sub(r"\\\n\s*", "", text).splitlines()


def tidemark_commands(text: str) -> Iterator[list[str]]:
    """The arguments of each call of tidemark in a text of a shell, with numbers in place of variables."""
    for line in lines_of(text):
        for found in re.finditer(
            r'(?:^|[\s(])(?:"\$tidemark"|tidemark) ((?:distributed|exporter|oom|run|plan|history) [^\n#]*)', line
        ):
            words = re.sub(r"\$\{?\w+[^\s\"}]*\}?", "1", found[1].replace('"${devices[@]}"', "--devices 0 cpu"))
            words = re.split(r"\s(?:[0-9&]*>|[&|;])|[`)]|\s&$", words)[0]
            yield shlex.split(words)


def all_commands() -> list[tuple[str, list[str]]]:
    found = [(path.name, words) for path in sorted(SLURM.glob("*.sh")) for words in tidemark_commands(path.read_text())]
    script = documents("job.yaml")[1]["spec"]["template"]["spec"]["containers"][0]["args"][0]
    found += [("job.yaml", words) for words in tidemark_commands(script)]
    container = documents("exporter/exporter.yaml")[1]["spec"]["template"]["spec"]["containers"][0]
    found.append(("exporter.yaml", container["args"]))
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found += [("deployment.md", words) for block in blocks for words in tidemark_commands(block)]
    return found


def test_the_commands_are_found() -> None:
    counts: dict[str, int] = {}
    for name, _ in all_commands():
        counts[name] = counts.get(name, 0) + 1
    assert counts.pop("deployment.md") >= 5
    assert counts == {"with-tidemark.sh": 2, "prolog.sh": 1, "job.yaml": 2, "exporter.yaml": 1}


@needs_program
def test_the_program_takes_their_options() -> None:
    """The options are parsed before help is printed."""
    wrong = subprocess.run([PROGRAM, "distributed", "--no-such-option", "--help"], capture_output=True, check=False)
    assert wrong.returncode == 2
    for name, words in all_commands():
        options = words[: words.index("--")] if "--" in words else words
        ran = subprocess.run([PROGRAM, *options, "--help"], text=True, capture_output=True, check=False)
        assert ran.returncode == 0, f"{name}: {shlex.join(words)}: {ran.stderr}"
        assert f"Usage: tidemark {words[0]}" in ran.stdout


def pod_of(document: Any) -> Any:
    return document["spec"]["template"]["spec"]


def test_manifests_have_no_privileges() -> None:
    account, daemons = documents("exporter/exporter.yaml")
    assert (account["kind"], daemons["kind"]) == ("ServiceAccount", "DaemonSet")
    service, job = documents("job.yaml")
    assert (service["kind"], job["kind"]) == ("Service", "Job")
    for document in (daemons, job):
        pod = pod_of(document)
        assert pod["automountServiceAccountToken"] is False
        assert not {"hostPID", "hostIPC", "hostNetwork"} & set(pod)
        assert not any("hostPath" in volume for volume in pod["volumes"])
        for container in pod["containers"]:
            assert not container.get("securityContext", {}).get("privileged")
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in pod["volumes"]}
    (container,) = pod_of(daemons)["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert account["automountServiceAccountToken"] is False
    everything = [one for path in KUBERNETES.rglob("*.yaml") for one in yaml.safe_load_all(path.read_text())]
    assert not [one["kind"] for one in everything if "Role" in one["kind"]], "no permission in the cluster"


def test_manifests_fit_together() -> None:
    account, daemons = documents("exporter/exporter.yaml")
    pod = pod_of(daemons)
    labels = daemons["spec"]["template"]["metadata"]["labels"]
    assert daemons["spec"]["selector"]["matchLabels"] == labels
    (monitor,) = documents("pod-monitor.yaml")
    assert monitor["spec"]["selector"]["matchLabels"] == labels
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (container,) = pod["containers"]
    assert endpoint["port"] in [port["name"] for port in container["ports"]]
    assert pod["serviceAccountName"] == account["metadata"]["name"]
    (volume,) = pod["volumes"]
    secret = endpoint["authorization"]["credentials"]
    assert volume["secret"] == {"secretName": secret["name"], "defaultMode": 0o400}, (
        "the program refuses a file that others read"
    )
    listens = container["args"][container["args"].index("--listen") + 1]
    assert listens.rpartition(":")[2] == str(container["ports"][0]["containerPort"])
    token = container["args"][container["args"].index("--listen-token-file") + 1]
    assert token == f"{container['volumeMounts'][0]['mountPath']}/{secret['key']}"
    for folder, resources in (
        (KUBERNETES / "exporter", ["namespace.yaml", "exporter.yaml"]),
        (KUBERNETES / "exporter-with-processes", ["../exporter"]),
    ):
        kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
        assert kustomization["resources"] == resources and all((folder / one).exists() for one in resources)
        assert kustomization["namespace"] == documents("exporter/namespace.yaml")[0]["metadata"]["name"]

    service, job = documents("job.yaml")
    name = job["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": name} and pod_of(job)["subdomain"] == service["metadata"]["name"]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 2
    script = pod_of(job)["containers"][0]["args"][0]
    assert script.count(f"{name}-0.{service['metadata']['name']}") == 2
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_builds_the_manifests() -> None:
    def built(folder: Path) -> list[Any]:
        ran = subprocess.run(["kubectl", "kustomize", str(folder)], text=True, capture_output=True, check=True)
        return list(yaml.safe_load_all(ran.stdout))

    plain, more = built(KUBERNETES / "exporter"), built(KUBERNETES / "exporter-with-processes")
    for documents_of, host, level in ((plain, None, "baseline"), (more, True, "privileged")):
        kinds = {one["kind"]: one for one in documents_of}
        assert set(kinds) == {"Namespace", "ServiceAccount", "DaemonSet"}
        pod = pod_of(kinds["DaemonSet"])
        assert pod.get("hostPID") is host
        assert pod["containers"][0]["image"].startswith("registry.example.org/tidemark:")
        assert kinds["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == level
        assert kinds["DaemonSet"]["metadata"]["namespace"] == "tidemark"


# In place of other programs: writes its arguments, and ends by SIGTERM if it is one that watches.
FAKE = """#!/bin/bash
echo "{name} $*" >>"{log}"
case "{name}" in
  scontrol) printf 'node1\\nnode2\\nnode3\\n' ;;
  runuser) shift 3; exec "$@" ;;
  srun) case "$*" in *tidemark*) ;; *) exec "$@" ;; esac ;;&
  tidemark | srun) trap 'echo "{name} ended" >>"{log}"; exit 0' TERM; for _ in $(seq 200); do sleep 0.1; done ;;
esac
"""


class Node:
    """A folder with programs in place of Slurm's and ours."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in names:
            path = self.bin / name
            path.write_text(FAKE.format(name=name, log=self.log))
            path.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> Any:
        path = f"{self.bin}:{os.environ['PATH']}"
        return subprocess.run(
            [str(SLURM / script), *arguments], cwd=self.folder, env={"PATH": path, "HOME": str(self.folder), **environment},
            text=True, capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    def wait_for(self, text: str) -> list[str]:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            lines = self.log.read_text().splitlines() if self.log.exists() else []
            if any(text in line for line in lines):
                return lines
            time.sleep(0.05)
        raise AssertionError(f"{text!r} is not in {lines}")


def test_a_slurm_job_is_watched(tmp_path: Path) -> None:
    node = Node(tmp_path, "tidemark", "srun", "scontrol")
    job = {"SLURM_JOB_ID": "41", "SLURM_JOB_NUM_NODES": "3", "SLURM_JOB_NODELIST": "node[1-3]"}
    program = tmp_path / "train"
    # The job waits until both watchers run, and its exit code is that of the script.
    program.write_text(
        f"#!/bin/bash\necho {tmp_path} ${{#TIDEMARK_JOB_TOKEN}}\n"
        f"until grep -q master {node.log} && grep -q 'srun.*worker' {node.log}; do sleep 0.1; done\nexit 7\n"
    )
    program.chmod(0o755)
    ran = node.run("with-tidemark.sh", str(program), **job)
    assert ran.returncode == 7, ran.stderr
    assert ran.stdout == f"{tmp_path} 64\n", "a key of 32 bytes"
    lines = node.log.read_text().splitlines()
    assert "tidemark distributed --role master --port 29400 --output tidemark-41.json" in lines
    (worker,) = [line for line in lines if line.startswith("srun --overlap")]
    assert worker.endswith("tidemark distributed --role worker --master-host node1 --port 29400")
    assert "--relative=1 --nodes=2 --ntasks-per-node=1" in worker
    assert lines[-2:] == ["tidemark ended", "srun ended"]
    assert node.run("with-tidemark.sh", **job).returncode == 2
    assert "call it in a Slurm job" in node.run("with-tidemark.sh", "true").stderr


def test_a_slurm_job_on_one_node_has_no_workers(tmp_path: Path) -> None:
    node = Node(tmp_path, "tidemark", "srun", "scontrol")
    wait = f"until grep -q master {node.log}; do sleep 0.1; done"
    ran = node.run("with-tidemark.sh", "bash", "-c", wait, SLURM_JOB_ID="42", SLURM_JOB_NUM_NODES="1", TIDEMARK_REPORT="a.json")
    assert ran.returncode == 0
    assert node.log.read_text().splitlines() == [
        "tidemark distributed --role master --port 29400 --output a.json",
        "tidemark ended",
    ]


def test_a_slurm_prolog_and_epilog(tmp_path: Path) -> None:
    node = Node(tmp_path, "tidemark", "runuser")
    settings = tmp_path / "settings"
    settings.write_text(
        f"PATH={node.bin}:$PATH\nTIDEMARK={node.bin}/tidemark\n"
        f"TIDEMARK_STATE={tmp_path}/state\nTIDEMARK_REPORTS={tmp_path}/reports\n"
    )
    user = pwd.getpwuid(os.getuid()).pw_name
    job = {"TIDEMARK_SETTINGS": str(settings), "SLURM_JOB_ID": "43", "SLURM_JOB_USER": user}
    assert node.run("prolog.sh", **job, SLURM_JOB_GPUS="2,5").returncode == 0
    lines = node.wait_for("tidemark oom")
    host = subprocess.run(["hostname", "-s"], text=True, capture_output=True, check=True).stdout.strip()
    report = tmp_path / "reports" / "43" / f"{host}.json"
    assert lines[1] == f"tidemark oom --monitor --devices 2 5 cpu --output {report}"
    assert lines[0] == f"runuser -u {user} -- {node.bin}/{lines[1]}"
    assert report.parent.stat().st_mode & 0o777 == 0o700
    assert node.run("epilog.sh", **job).returncode == 0
    assert "tidemark ended" in node.log.read_text()
    assert list((tmp_path / "state").iterdir()) == []
    assert node.run("epilog.sh", **job).returncode == 0, "an epilog without its prolog"

    # Whatever is missing, neither fails: Slurm would set the node to DOWN.
    for wrong in ({**job, "SLURM_JOB_ID": "../43"}, {**job, "SLURM_JOB_USER": ""}, {}):
        assert node.run("prolog.sh", **wrong).returncode == 0
        assert node.run("epilog.sh", **wrong).returncode == 0
    settings.write_text(f"TIDEMARK=/nonexistent\nTIDEMARK_STATE={tmp_path}/state\n")
    assert node.run("prolog.sh", **job).returncode == 0
    assert node.log.read_text().count("tidemark oom") == 2, "once, and in the line of runuser"


def test_an_epilog_ends_a_watcher_that_does_not_stop(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "state").mkdir()
    settings = tmp_path / "settings"
    settings.write_text(f"TIDEMARK_STATE={tmp_path}/state\n")
    stubborn = subprocess.Popen(
        ["bash", "-c", "trap '' TERM; echo ready; sleep 60"], start_new_session=True, stdout=subprocess.PIPE
    )
    assert stubborn.stdout is not None and stubborn.stdout.readline() == b"ready\n"
    (tmp_path / "state" / "44").write_text(f"{stubborn.pid}\n")
    assert node.run("epilog.sh", TIDEMARK_SETTINGS=str(settings), SLURM_JOB_ID="44").returncode == 0
    assert stubborn.wait(timeout=30) == -signal.SIGKILL


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing() -> None:
    scripts = sorted(str(path) for path in SLURM.glob("*.sh"))
    ran = subprocess.run(["shellcheck", *scripts], text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout


def dashboards() -> list[Path]:
    return sorted((SHARE / "grafana").glob("*.json"))


@pytest.mark.parametrize("path", dashboards(), ids=lambda path: path.stem)
def test_dashboards_use_metrics_that_exist(path: Path) -> None:
    table = (ROOT / "docs" / "metrics.md").read_text()
    known = set(re.findall(r"^\| `((?:hw|tidemark|process|system)_\w+)` \| `", table, re.MULTILINE))
    assert len(known) > 30
    dashboard = json.loads(path.read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = dashboard["templating"]["list"]
    queries += [variable["query"]["query"] for variable in variables if variable["type"] == "query"]
    names = {name for query in queries for name in re.findall(r"\b((?:hw|tidemark|process|system)_\w+)(?=[{,])", query)}
    labels = set(re.findall(r"^\| (`[^|]+) \| ", table.partition("The labels")[2], re.MULTILINE))
    labels = {label for cell in labels for label in re.findall(r"`(\w+)`", cell)}
    used = {label for query in queries for label in re.findall(r"[{,(]\s*(\w+)(?==|!=)", query)}
    used |= {
        label for query in queries for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", query) for label in group.split(", ")
    }
    assert len(names) > 8 and names - labels <= known, names - labels - known
    assert used - {"instance", "tidemark_bound", "hw_state"} <= labels, used - labels
    named = {variable["name"] for variable in variables}
    asked = set(re.findall(r"\$(\w+)", " ".join(queries))) - {"__rate_interval"}
    assert asked <= named
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert len({json.loads(other.read_text())["uid"] for other in dashboards()}) == len(dashboards())
