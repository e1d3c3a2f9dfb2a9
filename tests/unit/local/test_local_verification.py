"""The checks of a local run are those of a deployed platform, and none is left out without a word."""

from inference_blueprints.operate.verify import node_checks
from inference_blueprints.operate.verify.account_checks import ACCOUNT_CHECKS
from inference_blueprints.operate.verify.verification import CLUSTER_CHECKS
from inference_local.local_verification import LOCAL_CHECKS, NOT_HERE


def test_every_check_of_a_platform_runs_here_or_has_a_reason() -> None:
    everything = {"credentials", node_checks.CHECK, *ACCOUNT_CHECKS, *CLUSTER_CHECKS}
    assert {*NOT_HERE, *LOCAL_CHECKS} == everything
    assert not NOT_HERE.keys() & LOCAL_CHECKS.keys()


def test_the_checks_that_run_here_are_those_of_a_cluster_in_the_same_order() -> None:
    assert [(name, CLUSTER_CHECKS[name]) for name in CLUSTER_CHECKS if name in LOCAL_CHECKS] == list(
        LOCAL_CHECKS.items()
    )
