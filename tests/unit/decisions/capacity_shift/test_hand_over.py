"""What of a decision about a shared pool is carried out where nothing pre-empts: who stops, who waits."""

from __future__ import annotations

import pytest

from inference_decisions.capacity_shift.hand_over import HandOver, HostsNow, RoleNow, hand_over

LIVE, SHOP, LENT = "live", "shop", "lent"


def live(placed: int, floor: int, ceiling: int, *, wanted: int | None = None, size: int = 1) -> RoleNow:
    return _role(LIVE, placed, floor, ceiling, wanted=wanted, size=size, least=1, order=1)


def shop(placed: int, floor: int, ceiling: int, *, wanted: int | None = None) -> RoleNow:
    return _role(SHOP, placed, floor, ceiling, wanted=wanted, least=1, order=2)


def lent(placed: int, number: int, *, wanted: int | None = None, order: int = 0) -> RoleNow:
    return _role(LENT, placed, number, number, wanted=wanted, order=order, batch_only=True)


def _role(
    name: str,
    placed: int,
    floor: int,
    ceiling: int,
    *,
    wanted: int | None,
    order: int,
    size: int = 1,
    least: int = 0,
    batch_only: bool = False,
) -> RoleNow:
    return RoleNow(
        name=name,
        accelerators=size,
        least=least,
        floor=floor,
        ceiling=ceiling,
        wanted=placed if wanted is None else wanted,
        placed=placed,
        batch_only=batch_only,
        order=order,
    )


def given(
    roles: list[RoleNow], free: list[int], used: int, *, fixed: int = 0, overdue: bool = False
) -> HandOver:
    return hand_over(HostsNow(free=free, used=used, fixed=fixed), roles, overdue=overdue)


def test_batch_stops_first_and_real_time_asks_for_what_is_free_alone() -> None:
    """Red if ECS gets tasks for which there is no place: each would wait, or count in a deployment."""
    # Two hosts of four: batch has six, real time two. It needs six, batch keeps two.
    before = given([live(2, 6, 6), lent(6, 2)], [0, 0], 8)
    assert before.ranges == {LIVE: (2, 2), LENT: (2, 2)}
    assert before.waits == 4
    # One task of batch has stopped, three stop still and keep what they have.
    assert given([live(2, 6, 6), lent(2, 2)], [1, 0], 7).ranges == {LIVE: (3, 3), LENT: (2, 2)}
    # All have stopped.
    after = given([live(3, 6, 6), lent(2, 2)], [2, 1], 5)
    assert after == HandOver({LIVE: (6, 6), LENT: (2, 2)}, 0)


def test_batch_gets_what_is_left_and_no_more() -> None:
    answer = given([live(3, 2, 3), lent(1, 5, order=3)], [2, 1], 5)
    # One of real time stops first, so batch gets what is free, and the last place in the next run.
    assert answer.ranges == {LIVE: (2, 3), LENT: (4, 4)}


def test_tasks_of_real_time_that_are_asked_for_are_not_taken_back() -> None:
    """Red if ECS may stop a task that serves, because another one of its service has no place."""
    # A host with four of its tasks is gone, and batch has the only other one.
    answer = given([live(0, 4, 6, wanted=4), lent(4, 2)], [0], 4)
    assert answer.ranges[LIVE] == (4, 4)
    assert answer.waits == 4


def test_batch_gives_way_if_real_time_lost_a_host() -> None:
    """Red if batch keeps, on the hosts that are left, what the decision gave it on all."""
    # Decided: four each, on two hosts. One is lost with three of real time and one of batch.
    roles = [live(1, 4, 4, wanted=4), lent(3, 4, wanted=4)]
    assert given(roles, [0], 4).ranges == {LIVE: (4, 4), LENT: (0, 0)}
    # It stops for as long as it needs, and no more is taken meanwhile.
    roles = [live(1, 4, 4, wanted=4), lent(1, 4)]
    assert given(roles, [0], 4).ranges[LENT] == (0, 0)
    roles = [live(1, 4, 4, wanted=4), lent(0, 4)]
    assert given(roles, [0], 4).ranges == {LIVE: (4, 4), LENT: (0, 0)}
    # The host is back.
    roles = [live(4, 4, 4), lent(0, 4)]
    assert given(roles, [0, 4], 4).ranges == {LIVE: (4, 4), LENT: (4, 4)}


def test_batch_gives_way_until_a_large_worker_has_one_host() -> None:
    """Red if a worker of four accelerators waits for ever beside four that are free on two hosts."""
    roles = [live(0, 1, 1, size=4), lent(4, 4)]
    assert given(roles, [2, 2], 4).ranges == {LIVE: (1, 1), LENT: (0, 0)}
    # ECS chose tasks on both hosts. The last two go as well.
    roles = [live(0, 1, 1, size=4), lent(2, 4)]
    assert given(roles, [3, 3], 2).ranges[LENT] == (0, 0)
    assert given([live(0, 1, 1, size=4), lent(0, 4)], [4, 4], 0) == HandOver({LIVE: (1, 1), LENT: (4, 4)}, 0)


@pytest.mark.parametrize(("overdue", "left"), [(False, 3), (True, 1)])
def test_a_stop_that_never_ends_takes_another_workers_place(*, overdue: bool, left: int) -> None:
    """Red if real time waits for ever for a task whose host does not answer."""
    # Two tasks of batch were told to stop, and hold what they have.
    answer = given([live(3, 5, 5), lent(3, 3)], [0, 0], 8, overdue=overdue)
    assert answer.ranges == {LIVE: (3, 3), LENT: (left, left)}


def test_of_real_time_the_first_in_order_starts_first() -> None:
    answer = given([shop(1, 3, 3), live(1, 3, 3), lent(0, 4)], [2], 2)
    assert answer.ranges == {SHOP: (1, 1), LIVE: (3, 3), LENT: (0, 0)}
    assert answer.waits == 2


def test_places_of_fixed_workers_are_kept_while_they_start_again() -> None:
    """Red if batch takes the place of a fixed worker between its stop and its next start."""
    # Four of eight belong to a fixed worker, which is being replaced.
    answer = given([live(2, 2, 2), lent(0, 2)], [6], 2, fixed=4)
    assert answer.ranges[LENT] == (2, 2)
    assert given([live(2, 2, 4), lent(0, 2)], [5], 2, fixed=4).ranges == {LIVE: (2, 2), LENT: (1, 1)}


def test_the_smallest_numbers_hold_even_without_hosts() -> None:
    assert given([live(0, 3, 4, wanted=0), lent(0, 2)], [], 0).ranges == {LIVE: (1, 1), LENT: (0, 0)}


def test_two_runs_give_the_same_answer() -> None:
    roles = [live(2, 6, 6), lent(6, 2)]
    assert given(roles, [0, 0], 8) == given(roles, [0, 0], 8)
