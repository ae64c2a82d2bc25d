"""seccomp: the system calls that a child may make. What is not in the list fails with EPERM: told, not killed.

The list is what Python, torch, g++, its assembler and its linker were seen to need. Absent, and so denied, among
others: sockets of every family (socketpair too), ptrace, process_vm_readv, pidfd_open, kcmp, io_uring, bpf,
perf_event_open, userfaultfd, keyctl, mount and all its relatives, unshare, setns, chroot, memfd_create, SysV and POSIX
queues, setpriority, sched_setscheduler, move_pages, chown, setxattr, mknod, truncate, splice, name_to_handle_at,
modules, reboot, swapon, syslog, personality.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from server.sandbox.isolation import syscalls

# name:x86_64:aarch64
_ALLOWED = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222
mprotect:10:226 munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 pread64:17:67
pwrite64:18:68 readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124 mremap:25:216
msync:26:227 madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101 getitimer:36:102 alarm:37:-
setitimer:38:103 getpid:39:172 sendfile:40:71 fork:57:- vfork:58:- execve:59:221 exit:60:93 wait4:61:260
uname:63:160 flock:73:32 fsync:74:82 fdatasync:75:83 ftruncate:77:46 getdents:78:- getcwd:79:17 chdir:80:49
fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:- readlink:89:-
umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165 sysinfo:99:179 times:100:153 getuid:102:174
getgid:104:176 geteuid:107:175 getegid:108:177 setpgid:109:154 getppid:110:173 getpgrp:111:- setsid:112:157
getgroups:115:158 getresuid:118:148 getresgid:120:150 getpgid:121:155 getsid:124:156 capget:125:90
rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132 statfs:137:43 fstatfs:138:44
getpriority:140:141 sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125
sched_get_priority_min:147:126 arch_prctl:158:- setrlimit:160:164 gettid:186:178 time:201:- futex:202:98
sched_getaffinity:204:123 epoll_create:213:- getdents64:217:61 set_tid_address:218:96 restart_syscall:219:128
fadvise64:221:223 clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94
epoll_wait:232:- epoll_ctl:233:21 get_mempolicy:239:236 waitid:247:95 openat:257:56 mkdirat:258:34 newfstatat:262:79
unlinkat:263:35 renameat:264:38 linkat:265:37 symlinkat:266:36 readlinkat:267:78 faccessat:269:48 pselect6:270:72
ppoll:271:73 set_robust_list:273:99 epoll_pwait:281:22 fallocate:285:47 eventfd2:290:19 epoll_create1:291:20
dup3:292:24 pipe2:293:59 preadv:295:69 pwritev:296:70 getcpu:309:168 renameat2:316:276 getrandom:318:278
membarrier:324:283 copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 statx:332:291 rseq:334:293
close_range:436:436 faccessat2:439:439 epoll_pwait2:441:441
"""

# They pretend to succeed. Landlock does not mediate them, so with the server's own uid a child could change the mode
# and times of any file of that user. The linker and shutil fail when they fail; nothing needs their effect.
_PRETEND = """
chmod:90:- fchmod:91:52 fchmodat:268:53 fchmodat2:452:452 utime:132:- utimes:235:- futimesat:261:- utimensat:280:88
"""

# Their flags are behind a pointer, where no filter can look: libc falls back to clone and openat when they are absent.
_ABSENT = "clone3:435:435 openat2:437:437"

# Allowed by their arguments.
_BY_ARGUMENT = "clone:56:220 kill:62:129 tkill:200:130 tgkill:234:131 prctl:157:167 ioctl:16:29 fcntl:72:25"
# Only for the caller itself, as pid 0: by number they reach every process of the same user.
_SELF_ONLY = "prlimit64:302:261 sched_setaffinity:203:122"

# New namespaces; CLONE_PARENT makes a sibling, which is the warden's child; the last three are for tracers and pidfds.
_CLONE_DENIED = 0x7E020000 | 0x8000 | 0x800000 | 0x2000 | 0x1000
# Get pdeathsig, get dumpable, set and get name, set and get no_new_privs, read the bounding set, name a mapping.
_PRCTL_ALLOWED = (2, 3, 15, 16, 38, 39, 23, 0x53564D41)
# To be killed with the parent may be asked for, never taken back: that would let a child outlive its warden.
_SET_PDEATHSIG, _SIGKILL = 1, 9
# TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: what isatty, os and subprocess ask.
_IOCTL_ALLOWED = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# NVIDIA's driver: the type letter of its requests; UVM_INITIALIZE and UVM_DEINITIALIZE.
_NVIDIA_TYPE = ord("F")
_IOCTL_UVM = (0x30000001, 0x30000002)
# F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to others by way of a pipe. F_SETLEASE: others who open a file have to wait.
# F_NOTIFY.
_FCNTL_DENIED = (8, 10, 15, 1024, 1026)

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Above it are calls that this list has not judged; a program copes with a call that does not exist.
_LAST_KNOWN = 462

_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
_FILTER = 2
_DENY = _ERRNO | errno.EPERM


def numbers(table: str, machine: str) -> dict[str, int]:
    """Name → number on a machine, of those that it has."""
    column = 1 if machine == "x86_64" else 2
    fields = (entry.split(":") for entry in table.split())
    return {field[0]: int(field[column]) for field in fields if field[column] != "-"}


def _instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("HBBI", code, then, otherwise, value & 0xFFFFFFFF)


def _return(action: int) -> bytes:
    return _instruction(_RETURN, action)


def _load_argument(index: int) -> bytes:
    """The low half of an argument: every argument judged here is an int."""
    return _instruction(_LOAD, 16 + 8 * index)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """`body`, which returns on every way, for one system call; its number is in the accumulator."""
    return [_instruction(_EQUAL, number, 0, len(body)), *body]


def _among(index: int, values: tuple[int, ...], inside: int, outside: int) -> list[bytes]:
    """Return `inside` when an argument is one of the values, else `outside`."""
    tests = [part for value in values for part in (_instruction(_EQUAL, value, 0, 1), _return(inside))]
    return [_load_argument(index), *tests, _return(outside)]


def _ioctl(gpu: bool) -> list[bytes]:
    """`gpu`: also what NVIDIA's driver is asked: requests of its own type letter, and those of its unified memory, which are
    plain small numbers and two of their own. No filter can see whose descriptor it is; of other files these numbers mean
    nothing that needs guarding (below 256 is FIBMAP, which wants a right, and FIGETBSZ)."""
    refuse = _ERRNO | errno.ENOTTY
    if not gpu:
        return _among(1, _IOCTL_ALLOWED, _ALLOW, refuse)
    known = _among(1, (*_IOCTL_ALLOWED, *_IOCTL_UVM), _ALLOW, refuse)[:-1]
    by_number = [
        _instruction(_AT_LEAST, 0x100, 1, 0),
        _return(_ALLOW),
        _instruction(_AND, 0xFF00),
        _instruction(_EQUAL, _NVIDIA_TYPE << 8, 0, 1),
        _return(_ALLOW),
        _return(refuse),
    ]
    return [*known, *by_number]


def program(machine: str, own_pid: int | None, gpu: bool = False) -> bytes:
    """The filter as BPF. `own_pid`: the only process that may be signalled, where nothing else keeps signals inside. `gpu`:
    NVIDIA's driver may be spoken to."""
    if machine not in _AUDIT_ARCHITECTURE:
        raise OSError(errno.ENOSYS, f"no system call table for {machine}")
    code = [
        # Another architecture's numbers (int 0x80 on x86) mean other calls.
        _instruction(_LOAD, 4),
        _instruction(_EQUAL, _AUDIT_ARCHITECTURE[machine], 1, 0),
        _return(_KILL_PROCESS),
        _instruction(_LOAD, 0),
    ]
    if machine == "x86_64":
        # x32: the same calls under other numbers.
        code += [_instruction(_AT_LEAST, 0x40000000, 0, 1), _return(_KILL_PROCESS)]
    for number in numbers(_ALLOWED, machine).values():
        code += _when(number, [_return(_ALLOW)])
    for number in numbers(_PRETEND, machine).values():
        code += _when(number, [_return(_ERRNO | 0)])
    for number in numbers(_ABSENT, machine).values():
        code += _when(number, [_return(_ERRNO | errno.ENOSYS)])
    for number in numbers(_SELF_ONLY, machine).values():
        code += _when(number, _among(0, (0,), _ALLOW, _DENY))
    by = numbers(_BY_ARGUMENT, machine)
    clone = [_load_argument(0), _instruction(_ANY_BIT, _CLONE_DENIED, 0, 1), _return(_DENY), _return(_ALLOW)]
    code += _when(by["clone"], clone)
    tie = _among(1, (_SIGKILL,), _ALLOW, _DENY)
    tied = [_load_argument(0), _instruction(_EQUAL, _SET_PDEATHSIG, 0, len(tie)), *tie]
    code += _when(by["prctl"], [*tied, *_among(0, _PRCTL_ALLOWED, _ALLOW, _DENY)])
    code += _when(by["ioctl"], _ioctl(gpu))
    code += _when(by["fcntl"], _among(1, _FCNTL_DENIED, _DENY, _ALLOW))
    for name in ("kill", "tgkill"):
        code += _when(by[name], [_return(_ALLOW)] if own_pid is None else _among(0, (own_pid,), _ALLOW, _DENY))
    # It names a thread without its process.
    code += _when(by["tkill"], [_return(_ALLOW if own_pid is None else _DENY)])
    code += [_instruction(_AT_LEAST, _LAST_KNOWN + 1, 0, 1), _return(_ERRNO | errno.ENOSYS), _return(_DENY)]
    return b"".join(code)


def restrict(own_pid: int | None, gpu: bool = False) -> None:
    """Filter the system calls of this thread and all that it will start. Needs no_new_privs; cannot be undone."""
    code = program(syscalls.MACHINE, own_pid, gpu)
    held = ctypes.create_string_buffer(code, len(code))
    pointer = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(held))
    syscalls.prctl(syscalls.PR_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(pointer, len(pointer)))
