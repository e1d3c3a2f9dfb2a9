"""Runs commands in a network namespace that has only a loopback interface, and in mount namespaces.

A separate program that needs only the standard library. A process can move into a namespace only while it has
one thread, and its child processes stay there. Sources: network_namespaces(7), user_namespaces(7),
netdevice(7).

``python -I -S namespace.py hold FD`` creates the namespace, writes the result to the file
descriptor (``isolated``, or the reason for the failure), and waits. ``python -I -S namespace.py join PID
COMMAND …`` runs a command
in the namespace of that process. ``hold-as-root`` maps an ordinary user to root of the namespace, so that
commands may create further namespaces and interfaces in it. ``join-with-hosts PID FILE COMMAND …`` also lets
the command read this file as ``/etc/hosts`` (mount_namespaces(7)). ``mount FILE COMMAND …`` runs a command of
a joined namespace with folders at other paths; `isolation.with_mounts` writes the file.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path

ISOLATED = "isolated"

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
# Flags of a mount that a user namespace cannot change: nosuid, nodev, noexec, noatime, nodiratime.
_LOCKED_FLAGS = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
_INTERFACE_REQUEST = "16sh22x"  # struct ifreq: name, flags, padding
_LIBC = ctypes.CDLL(None, use_errno=True)


def hold(status_fd: int, *, as_root: bool) -> None:
    """Create the namespace, report the result, and hold the namespace until a signal ends this process."""
    try:
        _create(as_root=as_root)
        status = ISOLATED
    except OSError as error:
        status = error.strerror or str(error)
    os.write(status_fd, status.encode())
    os.close(status_fd)
    signal.pause()


def join(holder: int, command: list[str], hosts: str | None = None) -> None:
    """Replace this process by a command inside the namespace that another process holds."""
    namespaces = Path(f"/proc/{holder}/ns")
    if (namespaces / "user").readlink() != Path("/proc/self/ns/user").readlink():
        _enter(namespaces / "user", _CLONE_NEWUSER)
    _enter(namespaces / "net", _CLONE_NEWNET)
    if hosts is not None:
        _unshare_mounts()
        _bind(Path(hosts), Path("/etc/hosts"))
    os.execvp(command[0], command)  # noqa: S606 - becoming the command is this program's purpose


def mount(document: Path, command: list[str]) -> None:
    """Replace this process by a command that finds folders at other paths.

    The root of the command is a new file system in memory that has the folders of the machine's root, so
    nothing is created on the machine. The kernel removes it with the last process that uses it.
    """
    content = json.loads(document.read_text(encoding="utf-8"))
    root, mounts = Path(content["root"]), content["mounts"]
    folder = Path.cwd()
    _unshare_mounts()
    _call(_LIBC.mount, b"none", bytes(root), b"tmpfs", 0, None)
    # A path that the machine does not have is made below the new root, so its parents must be there too.
    _show(Path("/"), root, [Path(each["path"]) for each in mounts if not Path(each["path"]).is_dir()])
    for each in mounts:
        place = root / each["path"].lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        _bind(Path(each["source"]), place)
        if each["readOnly"]:
            flags = _MS_BIND | _MS_REMOUNT | _MS_RDONLY | (os.statvfs(place).f_flag & _LOCKED_FLAGS)
            _call(_LIBC.mount, None, bytes(place), None, flags, None)
    os.chroot(root)
    os.chdir(folder)
    os.execvp(command[0], command)  # noqa: S606 - becoming the command is this program's purpose


def _show(folder: Path, root: Path, new: list[Path]) -> None:
    """Show the entries of a folder below the new root. Folders in which something is new are new too."""
    for entry in folder.iterdir():
        place = root / str(entry).lstrip("/")
        if entry.is_symlink():
            place.symlink_to(entry.readlink())
        elif entry.is_dir():
            place.mkdir()
            if any(path.is_relative_to(entry) for path in new):
                _show(entry, root, new)
            else:
                _bind(entry, place)
        elif entry.is_file():
            place.touch()
            _bind(entry, place)


def enter_network(holder: int) -> None:
    """Move this thread, and no other, into the network namespace that another process holds (setns(2))."""
    _enter(Path(f"/proc/{holder}/ns/net"), _CLONE_NEWNET)


def _create(*, as_root: bool) -> None:
    """Move this process into a new network namespace and bring its loopback interface up."""
    user, group = os.geteuid(), os.getegid()
    inner_user, inner_group = (0, 0) if as_root else (user, group)
    try:
        _call(_LIBC.unshare, _CLONE_NEWNET)
    except PermissionError:  # an ordinary user may do this only in a user namespace
        _call(_LIBC.unshare, _CLONE_NEWUSER | _CLONE_NEWNET)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{inner_user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{inner_group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interfaces:
        fcntl.ioctl(interfaces, _SIOCSIFFLAGS, struct.pack(_INTERFACE_REQUEST, b"lo", _IFF_UP))


def _unshare_mounts() -> None:
    """Move this process into a new mount namespace. What it mounts is seen nowhere else."""
    _call(_LIBC.unshare, _CLONE_NEWNS)
    _call(_LIBC.mount, None, b"/", None, _MS_REC | _MS_PRIVATE, None)


def _bind(source: Path, place: Path) -> None:
    """Show a file or a folder, with what is mounted in it, at another place."""
    _call(_LIBC.mount, bytes(source), bytes(place), None, _MS_BIND | _MS_REC, None)


def _enter(namespace: Path, kind: int) -> None:
    descriptor = os.open(namespace, os.O_RDONLY)
    _call(_LIBC.setns, descriptor, kind)
    os.close(descriptor)


def _call(function: "ctypes._NamedFuncPointer", *arguments: int | bytes | None) -> None:
    """Call a function of the C library that returns 0 or sets errno."""
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hold" | "hold-as-root" as kind, descriptor]:
            hold(int(descriptor), as_root=kind == "hold-as-root")
        case ["join-with-hosts", process, file, *words]:
            join(int(process), words, file)
        case ["mount", file, *words]:
            mount(Path(file), words)
        case ["join", process, *words]:
            join(int(process), words)
        case _:
            sys.exit(__doc__)
