"""Other processes: seeing them, reading them, signalling them, slowing them, and outliving one's own end."""

from attacks import Attack

ATTACKS = (
    Attack(
        "list_processes",
        "processes of others are seen",
        "found = [p for p in os.listdir('/proc') if p == str(target['victim'])]; won(found) if found else None",
    ),
    Attack(
        "read_environment",
        "the server's environment is read",
        "won(open(f\"/proc/{target['victim']}/environ\").read())",
    ),
    Attack("own_environment", "a secret was left in the environment", "won(os.environ['AOTSCOPE_SECRET'])"),
    Attack("read_command_line", "a command line is read", "won(open(f\"/proc/{target['victim']}/cmdline\").read())"),
    Attack(
        "parent_environment",
        "the parent's environment is read",
        "won(open(f'/proc/{os.getppid()}/environ').read() or 'x')",
    ),
    Attack(
        "read_memory",
        "another process's memory is read",
        """
address = int(open(f"/proc/{target['victim']}/maps").readline().split('-')[0], 16)
memory = os.open(f"/proc/{target['victim']}/mem", os.O_RDONLY)
won(os.pread(memory, 4, address))
""",
    ),
    Attack(
        "root_of_other", "another process's root is entered", "won(os.listdir(f\"/proc/{target['victim']}/root/home\"))"
    ),
    Attack("descriptors_of_other", "another's files are reopened", "won(os.listdir(f\"/proc/{target['victim']}/fd\"))"),
    Attack("signal", "another process is ended", "os.kill(target['victim'], 9); won('killed')"),
    Attack("signal_group", "a process group is ended", "os.killpg(target['victim_group'], 9); won('killed')"),
    Attack("signal_zero", "a process's existence is asked", "os.kill(target['victim'], 0); won('alive')"),
    Attack("signal_warden", "the warden is ended", "os.kill(target['warden'], 9); won('killed')"),
    Attack(
        "signal_thread", "a thread is signalled", "call('tgkill', target['victim'], target['victim'], 9); won('killed')"
    ),
    Attack(
        "signal_queued",
        "a queued signal arrives",
        "import struct; call('rt_sigqueueinfo', target['victim'], 10, struct.pack('iii', 10, 0, -1) + bytes(116)); won('sent')",
    ),
    Attack(
        "signal_by_descriptor",
        "a process is signalled by a pidfd",
        "import signal; signal.pidfd_send_signal(os.pidfd_open(target['victim']), 9); won('killed')",
    ),
    Attack(
        "signal_by_pipe",
        "the kernel signals another for us when a pipe has data",
        """
import fcntl
r, w = os.pipe()
fcntl.fcntl(r, 8, target['victim'])
fcntl.fcntl(r, 10, 10)
fcntl.fcntl(r, fcntl.F_SETFL, fcntl.fcntl(r, fcntl.F_GETFL) | os.O_ASYNC)
os.write(w, b'x')
won('sent')
""",
    ),
    Attack(
        "trace", "another process is stopped and traced", "call('ptrace', 16, target['victim'], 0, 0); won('attached')"
    ),
    Attack(
        "read_by_call",
        "another's memory is read by process_vm_readv",
        """
class V(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
b = ctypes.create_string_buffer(8)
local, remote = V(ctypes.addressof(b), 8), V(target['address'], 8)
won(call('process_vm_readv', target['victim'], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
""",
    ),
    Attack(
        "write_by_call",
        "another's memory is written",
        """
class V(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
b = ctypes.create_string_buffer(b'evil', 8)
local, remote = V(ctypes.addressof(b), 8), V(target['address'], 8)
won(call('process_vm_writev', target['victim'], ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
""",
    ),
    Attack(
        "compare", "another's kernel objects are compared", "won(call('kcmp', os.getpid(), target['victim'], 1, 0, 0))"
    ),
    Attack(
        "steal_descriptor",
        "an open file is taken from another",
        "won(call('pidfd_getfd', os.pidfd_open(target['victim']), 0, 0))",
    ),
    Attack(
        "limit_other",
        "another's limits change",
        "import resource as r; r.prlimit(target['victim'], r.RLIMIT_NOFILE, (9, 9)); won('x')",
    ),
    Attack("priority", "another is slowed", "os.setpriority(os.PRIO_PROCESS, target['victim'], 19); won('slowed')"),
    Attack("affinity", "another is bound to a processor", "os.sched_setaffinity(target['victim'], {0}); won('bound')"),
    Attack(
        "scheduler",
        "another's scheduling changes",
        "os.sched_setscheduler(target['victim'], os.SCHED_IDLE, os.sched_param(0)); won('x')",
    ),
    Attack(
        "io_priority",
        "another's disk priority changes",
        "call('ioprio_set', 1, target['victim'], 3 << 13); won('idle')",
    ),
    Attack(
        "daemon",
        "a process lives on after the run",
        """
import signal
if os.fork() == 0:
    os.setsid()
    for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)
    if os.fork() == 0:
        for d in range(3): os.close(d)
        time.sleep(30)
    os._exit(0)
time.sleep(0.05)
""",
    ),
    Attack(
        "daemon_by_clone",
        "a process is made that is the warden's child, not ours",
        "r = call('clone', 0x8000 | 17, 0, 0, 0, 0)\nif r == 0: time.sleep(30); os._exit(0)\nwon(r)",
    ),
    Attack(
        "outlive_warden",
        "the tie to the warden's life is cut",
        "call('prctl', 1, 0, 0, 0, 0); won('cut')",
    ),
    Attack(
        "protect_from_memory_killer",
        "the kernel spares us when memory runs out",
        "open('/proc/self/oom_score_adj', 'w').write('0'); won('spared')",
    ),
)
