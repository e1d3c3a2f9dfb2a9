"""The objects of a benchmark in a cluster: what they may do, where they stand, and how they go."""

import base64
from dataclasses import replace
from typing import Any

from inference_blueprints.measure.benchmarking import load_generators
from inference_blueprints.operate.benchmark_job.job_objects import IMAGE, JobSettings, job, supporting_objects

SETTINGS = JobSettings("benchmark-qwen-0a1b", "inference", IMAGE, 300.0, with_key=False, with_authority=False)
WITH_ALL = replace(SETTINGS, with_key=True, with_authority=True)


def pod(settings: JobSettings = SETTINGS) -> dict[str, Any]:
    return dict(job(settings)["spec"]["template"]["spec"])


def environment(settings: JobSettings) -> dict[str, Any]:
    return {
        each["name"]: each.get("value", each.get("valueFrom"))
        for each in pod(settings)["containers"][0]["env"]
    }


def test_it_is_asked_once_ends_in_time_and_goes_by_itself() -> None:
    spec = job(SETTINGS)["spec"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == SETTINGS.deadline_seconds > 300
    assert spec["ttlSecondsAfterFinished"] > 0
    assert pod()["restartPolicy"] == "Never"


def test_its_pod_has_no_rights_and_writes_to_its_own_folder_alone() -> None:
    spec, (container,) = pod(), pod()["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
    assert writable == [environment(SETTINGS)["FOLDER"]]
    assert all(spec["volumes"][1]["emptyDir"].values())
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]


def test_it_stands_on_a_system_node() -> None:
    (term,) = pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert {"key": "inference-blueprints/pool", "operator": "DoesNotExist"} in term["matchExpressions"]


def test_the_image_is_pinned_to_the_release_that_runs_on_a_laptop() -> None:
    assert IMAGE.endswith(f":{load_generators.VERSION}")
    assert pod()["containers"][0]["image"] == IMAGE


def test_the_program_and_its_questions_are_in_one_map_that_the_job_owns() -> None:
    (config_map,) = supporting_objects(SETTINGS, "uid-1", b"questions", None, None)
    assert config_map["data"]["ask.py"] == load_generators.program().read_text()
    assert base64.b64decode(config_map["binaryData"]["questions.json.gz"]) == b"questions"
    (owner,) = config_map["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", SETTINGS.name, "uid-1")
    (mount, *_) = pod()["containers"][0]["volumeMounts"]
    assert environment(SETTINGS)["QUESTIONS"] == f"{mount['mountPath']}/questions.json.gz"
    assert pod()["volumes"][0]["configMap"] == {"name": config_map["metadata"]["name"]}


def test_the_key_is_in_a_secret_and_nowhere_else() -> None:
    config_map, secret = supporting_objects(WITH_ALL, "uid-1", b"", b"certificates", "sk-a-secret")
    assert base64.b64decode(secret["data"]["apiKey"]) == b"sk-a-secret"
    assert secret["metadata"]["ownerReferences"] == config_map["metadata"]["ownerReferences"]
    reference = environment(WITH_ALL)["API_KEY"]["secretKeyRef"]
    assert reference == {"name": secret["metadata"]["name"], "key": "apiKey"}
    for text in (str(config_map), str(job(WITH_ALL))):
        assert "sk-a-secret" not in text
        assert secret["data"]["apiKey"] not in text
    assert "API_KEY" not in environment(SETTINGS)


def test_certificates_are_where_openssl_is_told_to_look() -> None:
    (config_map,) = supporting_objects(WITH_ALL, None, b"", b"certificates", None)
    assert base64.b64decode(config_map["binaryData"]["ca.pem"]) == b"certificates"
    assert environment(WITH_ALL)["SSL_CERT_FILE"].endswith("/ca.pem")
    assert "SSL_CERT_FILE" not in environment(SETTINGS)
    assert "ownerReferences" not in config_map["metadata"]
