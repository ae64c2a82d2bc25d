"""The table of targets: names, and figures that are whole."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from compiler.targets import BY_ID, TARGETS, Device, Figure, Target, TargetName

_NAME: TypeAdapter[str] = TypeAdapter(TargetName)
VIRTUAL = [target for target in TARGETS if target.kind == "virtual"]


@pytest.mark.parametrize(
    ("typed", "id_"),
    [
        ("cpu", "cpu"),
        ("H100", "sm_90"),
        ("a100", "sm_80"),
        ("RTX 4090", "sm_89"),
        ("MI300X", "gfx942"),
        ("sm_75", "sm_75"),
    ],
)
def test_a_target_is_known_by_the_names_that_people_use(typed: str, id_: str) -> None:
    assert _NAME.validate_python(typed) == id_


@pytest.mark.parametrize("typed", ["h1000", "", "sm_91", 90, None])
def test_an_unknown_name_is_refused(typed: object) -> None:
    with pytest.raises(ValidationError, match="sm_90"):
        _NAME.validate_python(typed)


def test_no_name_means_two_targets() -> None:
    names = [name for target in TARGETS for name in {target.id, target.name.lower(), *target.aliases}]
    assert len(names) == len(set(names))
    assert all(name == name.lower() for target in TARGETS for name in target.aliases)


def _figures(device: Device) -> list[Figure]:
    alone = [value for value in dict(device).values() if isinstance(value, Figure)]
    return [*alone, *device.vector.values(), *device.matrix.values()]


@pytest.mark.parametrize("target", VIRTUAL, ids=lambda target: target.id)
def test_every_figure_of_a_device_is_positive_and_names_its_source(target: Target) -> None:
    device = target.device
    assert device is not None
    for figure in _figures(device):
        assert figure.value > 0
        assert figure.source
    assert device.shared_bytes_per_block.value <= device.shared_bytes_per_multiprocessor.value
    # A wider type is never faster, and a matrix unit never slower than the ordinary ones.
    assert device.matrix["float16"].value > device.vector["float32"].value > device.vector["float64"].value
    assert all(
        device.matrix[dtype].value >= rate.value for dtype, rate in device.vector.items() if dtype in device.matrix
    )


def test_only_virtual_targets_have_a_device_in_the_table() -> None:
    assert {target.id for target in TARGETS if target.device is None} == {"cpu", "cuda"}
    assert BY_ID["cpu"].torch_device == "cpu"
    assert BY_ID["gfx942"].torch_device == "cuda"
