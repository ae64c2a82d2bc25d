"""The compiler and other programs that a run may start: none of them may do more than the run itself."""

from attacks import Attack

_COMPILE = "r = subprocess.run({}, capture_output=True, text=True); won(r.stdout[:40]) if {} else None"


def _source(text: str, arguments: str, success: str) -> str:
    return f"open('a.cpp', 'w').write({text})\n" + _COMPILE.format(f"['g++', {arguments}]", success)


ATTACKS = (
    Attack(
        "gcc_include",
        "#include shows a file",
        _source('f\'#include "{target["secret"]}"\'', "'-E', 'a.cpp'", "'SECRET' in r.stdout + r.stderr"),
    ),
    Attack(
        "gcc_include_option",
        "-include shows a file",
        _source("''", "'-E', '-include', target['secret'], 'a.cpp'", "'SECRET' in r.stdout + r.stderr"),
    ),
    Attack(
        "gcc_incbin",
        "the assembler embeds a file",
        _source(
            'f\'asm(".incbin \\\\"{target["secret"]}\\\\"");\'',
            "'-c', 'a.cpp', '-o', 'a.o'",
            "not r.returncode and b'SECRET' in open('a.o', 'rb').read()",
        ),
    ),
    Attack(
        "gcc_arguments",
        "an argument file shows a file",
        _source("''", "'@' + target['secret'], '-E'", "'SECRET' in r.stderr"),
    ),
    Attack(
        "gcc_output",
        "the object is written outside",
        _source("'int a;'", "'-c', 'a.cpp', '-o', target['folder'] + '/new'", "not r.returncode"),
    ),
    Attack(
        "gcc_dependencies",
        "the list of headers is written outside",
        _source("'int a;'", "'-M', '-MF', target['folder'] + '/new', 'a.cpp'", "not r.returncode"),
    ),
    Attack(
        "linker_arguments",
        "the linker shows a file",
        _source(
            "'int a;'", "'-shared', '-fPIC', 'a.cpp', '-o', 'a.so', '-Wl,@' + target['secret']", "'SECRET' in r.stderr"
        ),
    ),
    Attack(
        "native_code",
        "compiled code does what Python may not",
        _source(
            'f\'#include <fcntl.h>\\n#include <unistd.h>\\nint main() {{ return open("{target["secret"]}", O_RDONLY) < 0; }}\'',
            "'a.cpp', '-o', 'a.out'",
            "not r.returncode and os.path.exists('a.out') and not subprocess.run(['/lib64/ld-linux-x86-64.so.2', './a.out']).returncode",
        ),
    ),
    Attack(
        "shell",
        "a shell reads what Python may not",
        "r = subprocess.run(f\"cat {target['secret']}\", shell=True, capture_output=True, text=True); won(r.stdout) if 'SECRET' in r.stdout else None",
    ),
    Attack(
        "find_secrets",
        "the machine is searched",
        "r = subprocess.run(['ls', target['folder']], capture_output=True, text=True); won(r.stdout) if r.stdout else None",
    ),
)
