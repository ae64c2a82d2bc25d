"""Network: sockets of every family, to the machine itself and beyond."""

from attacks import ROOT, Attack

ATTACKS = (
    Attack(
        "tcp",
        "a connection to a port of the machine",
        "socket.create_connection(('127.0.0.1', target['tcp']), 2); won('connected')",
    ),
    Attack("tcp_ipv6", "a socket of IPv6", "won(socket.socket(socket.AF_INET6).fileno())"),
    Attack(
        "tcp_listen",
        "a port that others can connect to",
        "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); won(s.getsockname())",
    ),
    Attack(
        "udp",
        "a datagram arrives",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', target['udp'])); won('sent')",
    ),
    Attack(
        "unix_path",
        "a service's Unix socket",
        "socket.socket(socket.AF_UNIX).connect(target['unix']); won('connected')",
    ),
    Attack(
        "unix_abstract",
        "a service's abstract Unix socket",
        "socket.socket(socket.AF_UNIX).connect(target['abstract']); won('connected')",
    ),
    Attack(
        "unix_datagram",
        "a datagram to a Unix socket",
        "a, b = socket.socketpair(type=socket.SOCK_DGRAM); a.sendto(b'x', target['unix_datagram']); won('sent')",
    ),
    Attack(
        "netlink",
        "the machine's network is read",
        "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0)); won('bound')",
    ),
    Attack(
        "vsock",
        "the hypervisor is reached",
        """
try: s = socket.socket(socket.AF_VSOCK)
except OSError as e:
    if e.errno == 97: absent('no vsock')
    raise
won(s.fileno())
""",
    ),
    Attack(
        "kernel_crypto",
        "the kernel's cipher interface",
        """
try: s = socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
except OSError as e:
    if e.errno == 97: absent('no AF_ALG')
    raise
won(s.fileno())
""",
    ),
    Attack("raw", "raw packets", "won(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno())", ROOT),
    Attack(
        "packet",
        "every packet of the machine",
        "won(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768).fileno())",
        ROOT,
    ),
    Attack("names", "a name is looked up", "won(socket.gethostbyname('localhost'))"),
    Attack(
        "asyncio_server",
        "a server by a library",
        "import asyncio; asyncio.run(asyncio.start_server(print, '127.0.0.1', 0)); won('listening')",
    ),
    Attack(
        "subprocess_network",
        "another program has the network",
        "subprocess.run([sys.executable, '-I', '-S', '-c', 'import socket; socket.socket()'], check=True, stderr=subprocess.DEVNULL); won('made')",
    ),
)
