"""A scratch on the machine's own disk, seen from outside: how much it holds, and its removal.

Both meet folders that a hostile program has made: a thousand deep, unreadable, or swapped for a link under one's
hands. So nothing here follows a path: folders are opened from their parent's descriptor, and links are never
followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _open(name: str, parent: int | None) -> int:
    """A folder, made readable first where its maker made it unreadable."""
    try:
        return os.open(name, _OPEN, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        finally:
            os.close(handle)
        return os.open(name, _OPEN, dir_fd=parent)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def usage(folder: str, pids: Iterable[int], most_entries: int, most_depth: int = 64) -> tuple[int, int]:
    """Bytes on disk and number of entries under a folder, and in files that are removed and still held by these
    processes.

    What is deeper than `most_depth` cannot be counted, and says more than `most_entries` at once."""
    size = entries = 0
    todo = [(os.open(folder, _OPEN), 0)]
    try:
        while todo:
            handle, depth = todo.pop()
            try:
                for name in os.listdir(handle):
                    entries += 1
                    if entries > most_entries or depth > most_depth:
                        return size, most_entries + 1
                    try:
                        if _is_folder(name, handle):
                            todo.append((_open(name, handle), depth + 1))
                        else:
                            size += os.stat(name, dir_fd=handle, follow_symlinks=False).st_blocks * 512
                    except (FileNotFoundError, NotADirectoryError):
                        continue  # removed or replaced meanwhile
            finally:
                os.close(handle)
    finally:
        for handle, _depth in todo:
            os.close(handle)
    return size + sum(_held(folder, pids).values()), entries


def _held(folder: str, pids: Iterable[int]) -> dict[int, int]:
    """Bytes by inode of removed files under a folder that a process holds open or mapped."""
    held: dict[int, int] = {}
    device = os.stat(folder).st_dev
    for pid in pids:
        try:
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                found = os.stat(f"/proc/{pid}/fd/{descriptor}")
                if found.st_dev == device and stat.S_ISREG(found.st_mode) and not found.st_nlink:
                    held[found.st_ino] = max(held.get(found.st_ino, 0), found.st_blocks * 512)
            with open(f"/proc/{pid}/maps", errors="replace") as maps:
                for line in maps:
                    if line.endswith(" (deleted)\n") and f" {folder}/" in line:
                        span, _rights, _offset, _device, inode = line.split(maxsplit=5)[:5]
                        start, end = (int(part, 16) for part in span.split("-"))
                        held[int(inode)] = max(held.get(int(inode), 0), end - start)
        except OSError:
            continue  # it has ended, or closed the descriptor
    return held


def remove(folder: str) -> None:
    """Remove a folder and all in it, however deep. Nobody may be writing there any more."""
    top = _open(folder, None)
    try:
        moved = 0
        while names := os.listdir(top):
            for name in names:
                if not _is_folder(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                handle = _open(name, top)
                try:
                    for inner in os.listdir(handle):
                        if _is_folder(inner, handle):
                            # Folders move up instead of being walked down, so no depth is too deep.
                            os.close(_open(inner, handle))
                            moved += 1
                            os.rename(inner, f".moved-{os.getpid()}-{moved}", src_dir_fd=handle, dst_dir_fd=top)
                        else:
                            os.unlink(inner, dir_fd=handle)
                finally:
                    os.close(handle)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)
