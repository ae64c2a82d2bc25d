"""More than its share: processes, memory, disk, output, time. `held` waits where a watcher needs a moment to look."""

from attacks import Attack

ATTACKS = (
    Attack(
        "fork_bomb",
        "a hundred processes at once",
        """
made = 0
try:
    for made in range(1, 101):
        if os.fork() == 0: time.sleep(3); os._exit(0)
except OSError: made -= 1
if made == 100: won(made)
""",
    ),
    Attack(
        "thread_bomb",
        "a hundred threads at once",
        """
import threading
gate = threading.Event()
for _ in range(100): threading.Thread(target=gate.wait, daemon=True).start()
won(threading.active_count())
""",
    ),
    Attack(
        "memory", "600 MB in one process", "b = bytearray(600 << 20); b[::4096] = b'x' * len(b[::4096]); won(len(b))"
    ),
    Attack(
        "memory_of_many",
        "600 MB in six processes",
        """
for _ in range(6):
    if os.fork() == 0:
        b = bytearray(100 << 20); b[::4096] = b'x' * len(b[::4096]); time.sleep(3); os._exit(0)
time.sleep(1.5); won('held')
""",
    ),
    Attack(
        "memory_shared",
        "600 MB of shared memory over six processes",
        """
import mmap
for _ in range(6):
    m = mmap.mmap(-1, 100 << 20)
    if os.fork() == 0:
        m[::4096] = b'x' * len(m[::4096]); time.sleep(3); os._exit(0)
    m.close()
time.sleep(1.5); won('held')
""",
    ),
    Attack(
        "memory_reserved", "30 GB of addresses", "import mmap; m = mmap.mmap(-1, 30 << 30, flags=0x4022); won(len(m))"
    ),
    Attack(
        "large_file",
        "a file of 48 MB",
        "f = open('f', 'wb'); [f.write(bytes(1 << 20)) for _ in range(48)]; f.close(); won(os.stat('f').st_size)",
    ),
    Attack(
        "many_large_files",
        "64 MB in eight files",
        "for i in range(8): open(f'f{i}', 'wb').write(bytes(8 << 20))\ntime.sleep(0.6); won('held')",
    ),
    Attack(
        "removed_files",
        "64 MB in files that have no name any more",
        """
held = []
for i in range(8):
    f = open(f'f{i}', 'wb'); f.write(bytes(8 << 20)); f.flush(); os.unlink(f'f{i}'); held.append(f)
time.sleep(0.6); won('held')
""",
    ),
    Attack(
        "removed_mapped_files",
        "64 MB in files that are only mapped",
        """
import mmap
held = []
for i in range(8):
    f = open(f'f{i}', 'wb+'); f.truncate(8 << 20); m = mmap.mmap(f.fileno(), 8 << 20); m[:] = b'x' * (8 << 20)
    f.close(); os.unlink(f'f{i}'); held.append(m)
time.sleep(0.6); won('held')
""",
    ),
    Attack(
        "hidden_files",
        "64 MB in a folder that cannot be listed",
        """
os.mkdir('d', 0o300)
for i in range(8): open(f'd/f{i}', 'wb').write(bytes(8 << 20))
time.sleep(0.6); won('held')
""",
    ),
    Attack(
        "deep_folders",
        "64 MB below a path that is too long to be named",
        """
for _ in range(100): os.mkdir('d' * 60); os.chdir('d' * 60)
for i in range(8): open(f'f{i}', 'wb').write(bytes(8 << 20))
time.sleep(0.6); won('held')
""",
    ),
    Attack("inodes", "3,000 files", "for i in range(3000): open(f'f{i}', 'w').close()\ntime.sleep(0.6); won('held')"),
    Attack("open_files", "2,000 open files", "f = [os.open('/dev/null', 0) for _ in range(2000)]; won(len(f))"),
    Attack(
        "locked_memory",
        "memory that cannot be swapped",
        "b = ctypes.create_string_buffer(8192); call('mlock', ctypes.addressof(b), 4096); won('locked')",
    ),
    Attack(
        "endless_loop",
        "a second of processor time",
        "e = time.monotonic() + 1.5\nwhile time.monotonic() < e: pass\nwon('ran')",
        wall=0.4,
    ),
    Attack("endless_sleep", "a second of waiting", "time.sleep(1.5); won('slept')", wall=0.4),
    Attack(
        "ignored_signals",
        "a second against every signal",
        """
import signal
for n in range(1, 64):
    try: signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError): pass
time.sleep(1.5); won('lived')
""",
        wall=0.4,
    ),
    Attack(
        "stopped",
        "a run that is stopped and never ends",
        "import signal\nif os.fork() == 0: time.sleep(1.2); won('lived')\ntime.sleep(1.5)",
        wall=0.4,
    ),
    Attack("much_output", "8 MB of output", "for _ in range(128): os.write(1, b'x' * 65536)\nwon('written')", wall=3.0),
    Attack(
        "much_error_output",
        "8 MB of error output",
        "for _ in range(128): os.write(2, b'x' * 65536)\nwon('written')",
        wall=3.0,
    ),
)
