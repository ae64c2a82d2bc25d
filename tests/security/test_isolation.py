"""The parts, each alone."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path

import pytest

from server.sandbox.isolation import IsolationError, Mode, Policy, disk, exit_code, isolate, needed, seccomp
from server.sandbox.isolation.probe import Probe, Trial, choose
from server.sandbox.isolation.reading import gpu_devices

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
TABLES = (seccomp._ALLOWED, seccomp._PRETEND, seccomp._ABSENT, seccomp._BY_ARGUMENT, seccomp._SELF_ONLY)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_system_call_numbers_are_the_kernels(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("no kernel headers")
    defined = re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", HEADERS[machine].read_text())
    real = {name: int(number) for name, number in defined}
    if "fstatat" in real:
        real |= {"newfstatat": real["fstatat"]}
    ours = {name: number for table in TABLES for name, number in seccomp.numbers(table, machine).items()}
    # Older headers lack the newest calls.
    assert {name: number for name, number in ours.items() if real.get(name, number) != number} == {}
    assert sum(name in real for name in ours) > 0.9 * len(ours)


def run_filter(
    machine: str,
    architecture: int,
    number: int,
    arguments: tuple[int, ...],
    own_pid: int | None = None,
    gpu: bool = False,
) -> int:
    """The program, interpreted: what a system call gets."""
    program = seccomp.program(machine, own_pid, gpu)
    code = [struct.unpack_from("HBBI", program, at) for at in range(0, len(program), 8)]
    padded = (arguments + (0,) * 6)[:6]
    data = struct.pack("IIQ6Q", number, architecture, 0, *(value & (1 << 64) - 1 for value in padded))
    at = accumulator = 0
    while True:
        operation, then, otherwise, value = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("I", data, value)[0]
        elif operation == 0x06:
            return int(value)
        elif operation == 0x54:
            accumulator &= value
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[operation]
            at += then if holds else otherwise


ALLOW, KILL, EPERM, ENOSYS, PRETEND, ENOTTY = 0x7FFF0000, 0x80000000, 0x50001, 0x50026, 0x50000, 0x50019
X86, ARM = 0xC000003E, 0xC00000B7


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "arguments", "verdict"),
    [
        ("x86_64", X86, 0, (), ALLOW),  # read
        ("x86_64", X86, 41, (2, 1), EPERM),  # socket
        ("x86_64", X86, 53, (1, 1), EPERM),  # socketpair
        ("x86_64", X86, 101, (16, 9), EPERM),  # ptrace
        ("x86_64", X86, 90, (), PRETEND),  # chmod
        ("x86_64", X86, 435, (), ENOSYS),  # clone3
        ("x86_64", X86, 999, (), ENOSYS),
        ("x86_64", X86, 56, (0x10000011,), EPERM),  # clone with a user namespace
        ("x86_64", X86, 56, (0x3D0F00,), ALLOW),  # a thread
        ("x86_64", X86, 203, (0,), ALLOW),  # sched_setaffinity of itself
        ("x86_64", X86, 203, (77,), EPERM),
        ("x86_64", X86, 157, (1, 9), ALLOW),  # prctl: killed with the parent
        ("x86_64", X86, 157, (1, 0), EPERM),
        ("x86_64", X86, 157, (22, 2), EPERM),
        ("x86_64", X86, 72, (3, 8), EPERM),  # fcntl F_SETOWN
        ("x86_64", X86, 72, (3, 1), ALLOW),
        ("x86_64", X86, 16, (0, 0x5412), ENOTTY),  # ioctl TIOCSTI
        ("x86_64", X86, 16, (0, 0x5401), ALLOW),
        ("x86_64", X86, 0x40000000, (), KILL),  # x32
        ("x86_64", 0x40000003, 4, (), KILL),  # i386
        ("aarch64", ARM, 63, (), ALLOW),  # read
        ("aarch64", ARM, 198, (2, 1), EPERM),  # socket
        ("aarch64", ARM, 53, (), PRETEND),  # fchmodat
        ("aarch64", ARM, 220, (0x10000011,), EPERM),  # clone
        ("aarch64", X86, 0, (), KILL),
    ],
)  # fmt: skip
def test_what_the_filter_says(
    machine: str, architecture: int, number: int, arguments: tuple[int, ...], verdict: int
) -> None:
    assert run_filter(machine, architecture, number, arguments) == verdict


@pytest.mark.parametrize(("number", "arguments", "verdict"), [(62, (9,), EPERM), (62, (7,), ALLOW), (200, (7,), EPERM)])
def test_signals_stay_inside_where_landlock_cannot_keep_them(
    number: int, arguments: tuple[int, ...], verdict: int
) -> None:
    assert run_filter("x86_64", X86, number, arguments, own_pid=7) == verdict
    assert run_filter("x86_64", X86, number, arguments) == ALLOW


@pytest.mark.parametrize(
    "policy",
    [
        Policy(Mode.LANDLOCK, "/nowhere", (), 1 if os.geteuid() == 0 else None),
        Policy(Mode.NAMESPACES, "/nowhere", (), 1 if os.geteuid() == 0 else None, warden=0),
        Policy(Mode.LANDLOCK, "/nowhere", (), None if os.geteuid() == 0 else 1, warden=0),
    ],
    ids=["no warden", "not process 1", "root stays root"],
)
def test_a_wrong_start_raises(policy: Policy) -> None:
    with pytest.raises(IsolationError) as fault:
        isolate(policy)
    assert fault.value.step == "start"


def test_choosing_a_mode() -> None:
    works, fails = Trial(Mode.LANDLOCK, True), Trial(Mode.NAMESPACES, False, "enclose", "not permitted")
    found = Probe("linux", "6.1", False, 3, fails, works)
    assert choose("auto", found) is Mode.LANDLOCK
    assert choose("none", found) is Mode.NONE
    with pytest.raises(IsolationError) as fault:
        choose("namespaces", found)
    assert (fault.value.step, fault.value.reason) == ("enclose", "not permitted")


def test_exit_codes_of_process_1() -> None:
    inside, outside = Policy(Mode.NAMESPACES, "/", ()), Policy(Mode.LANDLOCK, "/", ())
    assert [exit_code(inside, 6 << 8), exit_code(inside, 3 << 8), exit_code(inside, 11)] == [-6, 3, -11]
    assert exit_code(outside, 6 << 8) == 6


def test_never_the_folder_of_the_sources() -> None:
    root = str(Path(__file__).parents[2])
    assert root not in needed()
    assert not any(root.startswith(path + "/") for path in needed())


def test_usage_and_removal_of_hostile_folders(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "plain").mkdir(parents=True)
    (scratch / "plain" / "file").write_bytes(bytes(100_000))
    os.symlink("/usr", scratch / "link")
    held = os.open(scratch / "gone", os.O_CREAT | os.O_WRONLY)
    os.write(held, bytes(200_000))
    os.unlink(scratch / "gone")
    size, entries = disk.usage(str(scratch), [os.getpid()], 100)
    assert entries == 3
    assert 300_000 <= size < 400_000
    os.close(held)
    assert disk.usage(str(scratch), [], 2) == (disk.usage(str(scratch), [], 2)[0], 3)
    # Deeper than a path can be long, and closed to its owner.
    here = os.getcwd()
    os.chdir(scratch)
    for _ in range(150):
        os.mkdir("d" * 60)
        os.chdir("d" * 60)
    os.mkdir("closed", 0)
    os.chdir(here)
    assert disk.usage(str(scratch), [], 10_000)[1] == 10_001
    disk.remove(str(scratch))
    assert not scratch.exists()
    assert Path("/usr/bin").exists()


@pytest.mark.parametrize(
    ("request_", "gpu", "allowed"),
    [
        # TCGETS; TIOCSTI, which types into a terminal; an NVIDIA request; UVM's first, and one of its plain numbers; SIOCGIFCONF.
        (0x5401, False, True), (0x5401, True, True), (0x5412, False, False), (0x5412, True, False), (0xC020462A, False, False),
        (0xC020462A, True, True), (0x30000001, False, False), (0x30000001, True, True), (0x19, False, False), (0x19, True, True),
        (0x8912, True, False),
    ],
)  # fmt: skip
def test_a_gpus_driver_is_spoken_to_only_where_a_gpu_is_given(request_: int, gpu: bool, allowed: bool) -> None:
    got = run_filter("x86_64", 0xC000003E, 16, (3, request_), gpu=gpu)
    assert (got == 0x7FFF0000) is allowed


def test_the_nodes_of_a_gpu_are_the_drivers_and_no_others(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia-caps", "nvram", "sda"):
        (tmp_path / name).touch()
    assert gpu_devices(str(tmp_path)) == ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia12")
    assert gpu_devices("/proc/self/fdinfo") == ()
