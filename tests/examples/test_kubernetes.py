"""The manifest for Kubernetes: confined, and a service runs with what it says."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

import rprime as library
from rprime.settings import Settings
from tests.examples.kubernetes_schemas import mistakes
from tests.examples.recipes import EXAMPLES
from tests.services import Serve

DOCUMENTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((EXAMPLES / "kubernetes" / "rprime.yaml").read_text())
)
OBJECTS = {document["kind"]: document for document in DOCUMENTS}
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]
VARIABLES = {variable["name"]: variable for variable in CONTAINER["env"]}
HOSTS = VARIABLES["RPRIME_HOSTS"]["value"].replace("$(POD_IP)", "10.0.0.7")
"""As Kubernetes expands it in a pod of this address."""
MIB = 1024 * 1024


def test_it_has_a_deployment_a_service_a_budget_and_a_policy() -> None:
    kinds = ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]
    assert sorted(OBJECTS) == kinds
    assert len(DOCUMENTS) == 4


@pytest.mark.parametrize("kind", OBJECTS)
def test_the_api_of_kubernetes_accepts_each_kind(kind: str) -> None:
    assert mistakes(OBJECTS[kind]) == []


@pytest.mark.parametrize(
    ("kind", "change", "place"),
    [
        ("Deployment", lambda d: d["spec"].pop("selector"), "$.spec"),
        ("Deployment", lambda d: d["spec"].update(replicas="2"), "$.spec.replicas"),
        (
            "Deployment",
            lambda d: d["spec"]["template"]["spec"]["containers"][0].update(readynessProbe={}),
            "$.spec.template.spec.containers[0]",
        ),
        ("Deployment", lambda d: d.update(apiVersion="apps/v1beta1"), "$.apiVersion"),
        ("Service", lambda d: d["spec"]["ports"][0].pop("port"), "$.spec.ports[0]"),
        ("PodDisruptionBudget", lambda d: d["spec"].update(minAvailable=0.5), "$.spec.minAvail"),
        (
            "NetworkPolicy",
            lambda d: d["spec"]["ingress"][0]["from"][1]["namespaceSelector"].update(matchNames=[]),
            "$.spec.ingress[0].from[1].namespaceSelector",
        ),
    ],
)
def test_a_mistake_in_a_kind_is_found(
    kind: str, change: Callable[[dict[str, Any]], object], place: str
) -> None:
    document = deepcopy(OBJECTS[kind])
    change(document)
    assert any(mistake.startswith(place) for mistake in mistakes(document)), mistakes(document)


def test_an_update_ends_the_old_version_before_the_new_one_starts() -> None:
    """Two versions must not write to one store."""
    assert OBJECTS["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}


def test_only_postgresql_and_name_servers_are_reached() -> None:
    policy = OBJECTS["NetworkPolicy"]["spec"]
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    [egress] = policy["egress"]
    assert {port["port"] for port in egress["ports"]} == {53, 5432}


def test_probes_of_the_kubelet_are_answered_by_the_address_of_the_pod(serve: Serve) -> None:
    with serve(RPRIME_STORE="none", RPRIME_HOSTS=HOSTS) as client:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = CONTAINER[probe]["httpGet"]["path"]
            assert client.get(path, headers={"Host": "10.9.9.9:8000"}).status_code == 200
        by_address = client.get("/metrics", headers={"Host": "10.0.0.7:8000"})
        assert by_address.status_code == 200
        assert client.get("/metrics", headers={"Host": "evil.example"}).status_code == 421


def test_all_select_the_same_pods() -> None:
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OBJECTS["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert OBJECTS["Service"]["spec"]["selector"] == labels
    assert OBJECTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    replicas = OBJECTS["Deployment"]["spec"]["replicas"]
    assert OBJECTS["PodDisruptionBudget"]["spec"]["minAvailable"] < replicas


def test_it_is_confined() -> None:
    pod, container = POD["securityContext"], CONTAINER["securityContext"]
    assert pod["runAsNonRoot"]
    user = f"USER {pod['runAsUser']}:{pod['runAsGroup']}\n"
    assert user in (EXAMPLES.parent / "Dockerfile").read_text()
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert POD["automountServiceAccountToken"] is False
    # Else the service gets RPRIME_PORT=tcp://... for the Service of this name.
    assert POD["enableServiceLinks"] is False


def test_every_variable_is_a_setting_and_no_secret_has_a_value() -> None:
    assert set(VARIABLES) - {"POD_IP"} <= {
        f"RPRIME_{name.upper()}" for name in Settings.model_fields
    }
    for name in ("RPRIME_STORE", "RPRIME_SESSION_SECRET"):
        assert VARIABLES[name]["valueFrom"]["secretKeyRef"]["name"] == "rprime"
    assert CONTAINER["image"].endswith(f":{library.__version__}")


def test_the_memory_holds_all_limits() -> None:
    limit = CONTAINER["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    assert int(limit.removesuffix("Mi")) >= 1.3 * 1024
    defaults = Settings(store="none").limits
    assert defaults.fitted(int(limit.removesuffix("Mi")) * MIB) == defaults


def test_the_temporary_folder_holds_bodies_that_are_written_there() -> None:
    [folder] = [volume for volume in POD["volumes"] if volume["name"] == "temporary"]
    limits = Settings(store="none").limits
    size = int(folder["emptyDir"]["sizeLimit"].removesuffix("Mi")) * MIB
    assert size > limits.large_requests * limits.other_body_bytes


def test_only_its_user_and_group_read_the_keys() -> None:
    [keys] = [volume for volume in POD["volumes"] if volume["name"] == "keys"]
    assert keys["secret"]["defaultMode"] == 0o440


def test_there_is_time_to_stop() -> None:
    drain = float(VARIABLES["RPRIME_DRAIN_SECONDS"]["value"])
    probe = CONTAINER["readinessProbe"]
    assert drain > probe["periodSeconds"] + probe["timeoutSeconds"] - 1
    stop: float = Settings.model_fields["stop_seconds"].default
    assert drain + stop + 1 < POD["terminationGracePeriodSeconds"]


@pytest.mark.slow
def test_a_service_with_these_variables_answers_the_probes(serve: Serve, tmp_path: Path) -> None:
    [mount] = [volume for volume in CONTAINER["volumeMounts"] if volume["name"] == "keys"]
    keys = VARIABLES["RPRIME_KEYS_FILE"]["value"]
    assert keys == f"{mount['mountPath']}/keys.json"
    settings = {
        name: variable["value"] for name, variable in VARIABLES.items() if "value" in variable
    }
    settings |= {"RPRIME_KEYS_FILE": str(tmp_path / "keys.json"), "RPRIME_STORE": "none"}
    settings["RPRIME_HOSTS"] = HOSTS
    settings |= {"RPRIME_SESSION_SECRET": 32 * "x", "RPRIME_DRAIN_SECONDS": "0"}
    with serve(**settings) as client:
        address = f"http://127.0.0.1:{client.base_url.port}"
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            path = CONTAINER[probe]["httpGet"]["path"]
            # The kubelet asks by the address of the pod.
            answer = httpx.get(address + path, headers={"Host": "10.1.2.3:8000"})
            assert answer.status_code == 200, path
        content = {"confusion_matrix": [[1]]}
        assert client.post("/evaluate", json=content, headers={"Host": "rprime"}).status_code == 401
