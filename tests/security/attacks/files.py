"""Files: reading, writing, and what is done to them without opening them."""

from attacks import ROOT, Attack

ATTACKS = (
    Attack("read_passwd", "the user list is read", "won(open('/etc/passwd').read()[:20])"),
    Attack("read_secret", "a file of the server is read", "won(open(target['secret']).read())"),
    Attack("list_folder", "a folder of the server is listed", "won(os.listdir(target['folder']))"),
    Attack("list_root", "folders of the machine are seen", "won(os.listdir('/home'))"),
    Attack(
        "read_shadow", "the machine's password hashes are read", "won(open('/etc/shadow').read()[:5])", control=ROOT
    ),
    Attack("read_neighbour", "another run's scratch is read", "won(open(target['neighbour']).read())"),
    Attack("read_server_module", "the server's source is read", "won(open(target['server_module']).read()[:20])"),
    Attack(
        "import_server_module",
        "a module of the application is imported",
        "sys.path.insert(0, target['application']); import application_settings as found; won(found.TOKEN)",
    ),
    Attack(
        "write_outside", "a file appears beside the secret", "open(target['folder'] + '/new', 'w').close(); won('made')"
    ),
    Attack("write_tmp", "a file appears in /tmp", "open(target['tmp'], 'w').close(); won('made')"),
    Attack("write_shared_memory", "a file appears in /dev/shm", "open(target['shm'], 'w').close(); won('made')"),
    Attack(
        "overwrite_secret", "a file of the server is emptied", "open(target['secret'], 'w').close(); won('emptied')"
    ),
    Attack("truncate_secret", "a file is cut without being opened", "os.truncate(target['secret'], 1); won('cut')"),
    Attack("remove_secret", "a file of the server is removed", "os.unlink(target['secret']); won('removed')"),
    Attack("rename_secret", "a file of the server is taken away", "os.rename(target['secret'], 'mine'); won('taken')"),
    Attack(
        "replace_secret",
        "a file of the server is replaced",
        "open('mine', 'w').write('x'); os.rename('mine', target['secret']); won('replaced')",
    ),
    Attack("hard_link", "a second name inside reads the file", "os.link(target['secret'], 'l'); won(open('l').read())"),
    Attack("symbolic_link", "a link inside reads the file", "os.symlink(target['secret'], 'l'); won(open('l').read())"),
    Attack(
        "link_folder",
        "a link to a folder leads outside",
        "os.symlink(target['folder'], 'l'); open('l/new', 'w').close(); won('made')",
    ),
    Attack(
        "dot_dot",
        "a relative path leads outside",
        "won(open('/'.join(['..'] * 40) + target['secret']).read())",
    ),
    Attack("proc_self_root", "/proc/self/root leads outside", "won(open('/proc/self/root' + target['secret']).read())"),
    Attack(
        "path_handle",
        "a folder opened as a path only leads to its files",
        "d = os.open(target['folder'], os.O_PATH); won(os.read(os.open('secret', os.O_RDONLY, dir_fd=d), 9))",
    ),
    Attack(
        "change_folder",
        "a change of folder leads to its files",
        "os.chdir(target['folder']); won(open('secret').read())",
    ),
    Attack(
        "file_handle",
        "a file is opened by its number, past every path",
        """
import struct
handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
mount = ctypes.c_int()
call('name_to_handle_at', -100, target['secret'].encode(), handle, ctypes.byref(mount), 0)
folder = os.open(target['folder'], os.O_RDONLY)
won(os.read(call('open_by_handle_at', folder, handle, 0), 9))
""",
        control=ROOT,
    ),
    Attack("change_mode", "the mode of a server's file changes", "os.chmod(target['secret'], 0o4777)"),
    Attack(
        "change_mode_at",
        "the mode changes by way of a descriptor",
        "d = os.open(target['folder'], os.O_PATH); os.chmod('secret', 0o4777, dir_fd=d)",
    ),
    Attack(
        "change_owner", "a file of the server gets another owner", "os.chown(target['secret'], 1, 1); won('mine')", ROOT
    ),
    Attack("change_times", "the times of a file change", "os.utime(target['secret'], (1, 1))"),
    Attack(
        "set_attribute",
        "a file of the server gets an extended attribute",
        "os.setxattr(target['secret'], 'user.x', b'x'); won('set')",
    ),
    Attack(
        "change_library",
        "a package that others import is changed",
        "open(target['library'], 'a').write('evil()'); won('x')",
    ),
    Attack("remove_library", "a package that others import is removed", "os.unlink(target['library']); won('removed')"),
    Attack(
        "chmod_library",
        "a package that others import becomes executable for all",
        "os.chmod(target['library'], 0o777)",
    ),
    Attack(
        "lease",
        "others who open a shared file are held up",
        "import fcntl; fcntl.fcntl(os.open(target['library'], os.O_RDONLY), 1024, 0); won('leased')",
    ),
    Attack(
        "watch_files",
        "what others do in a folder is seen",
        "f = call('inotify_init1', 0); call('inotify_add_watch', f, target['folder'].encode(), 0xfff); won('watching')",
    ),
    Attack(
        "named_pipe",
        "another process gets a message by a named pipe",
        "os.write(os.open(target['fifo'], os.O_WRONLY | os.O_NONBLOCK), b'x'); won('sent')",
    ),
    Attack(
        "make_device",
        "the disk is read past the file system",
        "os.mknod('disk', 0o60666, os.makedev(1, 0)); won('made')",
        control=ROOT,
    ),
    Attack("terminal", "a terminal is opened", "won(os.open('/dev/ptmx', os.O_RDWR))"),
    Attack(
        "poison_cache",
        "what the next run loads from the shared cache is changed",
        """
for folder in (target['golden'],):
    for name in os.listdir(folder):
        open(os.path.join(folder, name), 'w').write('evil')
""",
    ),
    Attack(
        "poison_cache_by_link",
        "a link to an entry of the shared cache is written through",
        """
name = os.listdir(target['golden'])[0]
os.link(os.path.join(target['golden'], name), os.path.join(target['scratch'], 'l'))
open(os.path.join(target['scratch'], 'l'), 'w').write('evil')
""",
    ),
)
