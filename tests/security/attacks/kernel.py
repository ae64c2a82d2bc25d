"""The kernel's wide interfaces, new namespaces, and rights."""

from attacks import ROOT, Attack

ATTACKS = (
    Attack("io_uring", "a ring that makes calls past the filter", "won(call('io_uring_setup', 4, bytes(120)))"),
    Attack(
        "bpf",
        "a program or map in the kernel",
        "import struct; won(call('bpf', 0, struct.pack('IIII', 2, 4, 8, 1) + bytes(56), 72))",
        ROOT,
    ),
    Attack(
        "perf",
        "performance counters of the machine",
        "import struct; won(call('perf_event_open', struct.pack('IIQ', 1, 112, 0) + bytes(96), 0, -1, -1, 0))",
        ROOT,
    ),
    Attack("userfaultfd", "page faults are handled by us", "won(call('userfaultfd', 1))"),
    Attack("keyring", "a key that outlives us", "won(call('add_key', b'user', b'aotscope', b'x', 1, -2))"),
    Attack("keyring_join", "the server's keyring is searched", "won(call('keyctl', 0, -3, 0, 0, 0))"),
    Attack("anonymous_file", "memory that no limit on files counts", "won(os.memfd_create('x'))"),
    Attack(
        "shared_memory",
        "memory that outlives us",
        "i = call('shmget', 0, 4096, 0o1600); won(i); call('shmctl', i, 0, 0)",
    ),
    Attack(
        "message_queue", "a queue that outlives us", "i = call('msgget', 0, 0o1600); won(i); call('msgctl', i, 0, 0)"
    ),
    Attack(
        "posix_queue",
        "a named queue",
        "won(call('mq_open', b'aotscope', 0o102, 0o600, 0)); call('mq_unlink', b'aotscope')",
    ),
    Attack(
        "new_user_namespace", "every right in a namespace of its own", "call('unshare', 0x10000000); won('root inside')"
    ),
    Attack("new_mount_namespace", "mounts of its own", "call('unshare', 0x10020000); won('mounts')"),
    Attack("new_network_namespace", "a network of its own", "call('unshare', 0x50000000); won('network')"),
    Attack(
        "clone_user_namespace",
        "a child with a user namespace",
        "r = call('clone', 0x10000000 | 17, 0, 0, 0, 0)\nif r == 0: os._exit(0)\nos.waitpid(r, 0); won(r)",
    ),
    Attack(
        "clone3_user_namespace",
        "a child with a user namespace, flags behind a pointer",
        """
import struct
r = call('clone3', ctypes.create_string_buffer(struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0)), 64)
if r == 0: os._exit(0)
os.waitpid(r, 0); won(r)
""",
    ),
    Attack(
        "join_namespace",
        "the server's namespaces are joined",
        "call('setns', os.open(f\"/proc/{target['victim']}/ns/uts\", 0), 0); won('joined')",
        ROOT,
    ),
    Attack(
        "mount",
        "a file system is mounted",
        "call('unshare', 0x20000); call('mount', b'none', b'/mnt', b'tmpfs', 0, 0); won('mounted')",
        ROOT,
    ),
    Attack("mount_new_interface", "a mount by the new calls", "won(call('fsopen', b'tmpfs', 0))", ROOT),
    Attack("copy_mount", "a mount is copied and opened", "won(call('open_tree', -100, b'/', 1))", ROOT),
    Attack("change_root", "another root", "os.chroot('/'); won('changed')", ROOT),
    Attack("host_name", "the machine gets another name", "socket.sethostname(os.uname().nodename); won('named')", ROOT),
    Attack(
        "kernel_setting",
        "a setting of the kernel is written",
        "f = '/proc/sys/kernel/panic'; v = open(f).read(); open(f, 'w').write(v); won('set')",
        ROOT,
    ),
    Attack("kernel_log", "the kernel's log is read", "won(call('syslog', 10, 0, 0))", ROOT),
    Attack("file_events", "every access to the disk is seen", "won(call('fanotify_init', 0, 0))", ROOT),
    Attack("become_root", "user 0 again", "os.setuid(0); won(os.getuid())", ROOT),
    Attack("become_other", "another user", "os.setuid(12345); won('changed')", ROOT),
    Attack(
        "keep_capability",
        "a capability is left",
        "d = ctypes.create_string_buffer(24); call('capget', b'\\x22\\x05\\x08\\x20' + bytes(4), d); won('left') if any(d.raw) else None",
        ROOT,
    ),
    Attack(
        "privileges_by_exec",
        "a setuid program gives rights",
        "won('allowed') if call('prctl', 39, 0, 0, 0, 0) == 0 else None",
    ),
    Attack(
        "scheduling_real_time",
        "a processor is taken for good",
        "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)); won('taken')",
        ROOT,
    ),
    Attack(
        "raise_limit",
        "a limit is raised again",
        "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (4096, 4096)); won('raised')",
    ),
    Attack(
        "own_filter",
        "a filter of its own, with a listener",
        "import struct; b = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000)); call('prctl', 38, 1, 0, 0, 0); call('prctl', 22, 2, ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(b))), 0, 0); won('set')",
    ),
    Attack(
        "calls_of_32_bits",
        "a call of another architecture passes the filter",
        """
import mmap, platform
if platform.machine() != 'x86_64': absent('x86 only')
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex('b814000000cd80c3'))
pid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
won(pid) if pid == os.getpid() else absent('the kernel has no 32 bit calls')
""",
    ),
)
