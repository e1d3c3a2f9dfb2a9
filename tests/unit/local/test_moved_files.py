"""Files that a variable packs get the folders of a task."""

from __future__ import annotations

from inference_blueprints.contracts.packed_files import pack_files, unpack_files
from inference_blueprints.local.ecs_platform.moved_files import moved


def test_paths_and_what_refers_to_them_move_together() -> None:
    packed = pack_files({"/configuration/prometheus.yml": '{"rule_files": ["/configuration/rules.yml"]}'})
    assert unpack_files(moved(packed, "/run/volume")) == {
        "/run/volume/prometheus.yml": '{"rule_files": ["/run/volume/rules.yml"]}'
    }
