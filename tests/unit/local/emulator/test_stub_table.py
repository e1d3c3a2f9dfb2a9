"""The table of stubs: complete entries, and answers that references can be built from."""

import pytest

from inference_local.emulator.resource_handlers import stubbed_resource_types
from inference_local.emulator.resource_handlers.stubs import STUBS


@pytest.mark.parametrize("resource_type", STUBS)
def test_every_form_can_be_filled_from_what_the_stub_requires(resource_type: str) -> None:
    stub = STUBS[resource_type]
    values = dict.fromkeys(("account", "region", "unique", *stub.required), "x")
    identifier = stub.identifier.format_map(values)
    assert identifier
    for form in stub.attributes.values():
        assert form.format_map({**values, "id": identifier})


def test_the_report_has_a_sentence_for_every_stub() -> None:
    sentences = stubbed_resource_types()
    assert set(sentences) == set(STUBS)
    assert all("; " in sentence for sentence in sentences.values()), "what is taken; what does not happen"
