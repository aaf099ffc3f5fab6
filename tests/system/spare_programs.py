"""Small programs that are to come out the same natively and through a spare: NAME = source, and
what stands in its first line: `# args: ...`, `# stdin: TEXT`, `# flags: ...`, `# status: N`, or
`# shell: SCRIPT` with "$@" for the program."""
import re

SETTING = re.compile(r"^# (args|stdin|flags|status|shell): (.*)$", re.M)


def settings_of(source):
    """What stands in a program's first lines."""
    return dict(SETTING.findall(source))


SCRIPTS = {
    "hello": "print('hello')",
    "arguments": "# args: a 'b c' --x=1 \nimport sys\nprint(sys.argv,\n"
                 "      len(getattr(sys, 'orig_argv', [])))",
    "argparse": "# args: --n 3 file\nimport argparse\np = argparse.ArgumentParser()\n"
                "p.add_argument('--n', type=int)\np.add_argument('f')\nprint(p.parse_args())",
    "argparse_wrong": "# args: --no\n# status: 2\nimport argparse\n"
                      "argparse.ArgumentParser().parse_args()",
    "argparse_help": "# args: -h\nimport argparse\n"
                     "argparse.ArgumentParser(description=__doc__).parse_args()",
    "stdin_pipe": "# stdin: one\\ntwo\\n\nimport sys\nprint(sys.stdin.read().split(), "
                  "sys.stdin.isatty(), sys.stdin.line_buffering, sys.stdin.name)",
    "stdin_lines": "# stdin: 1\\n2\\n3\\n\nprint(sum(int(l) for l in open(0)))",
    "stdin_input": "# stdin: me\\n\nprint('hello', input('who? '))",
    "stdin_eof": "# status: 1\ninput()",
    "stdin_file": "# shell: printf 'a\\nb\\nc\\n' > in; { \"$@\"; cat; } < in\nimport os, sys\n"
                  "print(os.read(0, 2), os.lseek(0, 0, 1), sys.stdin.buffer.raw)",
    "stdin_null": "import sys\nprint(repr(sys.stdin.read()))",
    "streams": "import sys\nfor f in sys.stdin, sys.stdout, sys.stderr:\n"
               "    print(f, f.errors, f.newlines, f.line_buffering, f.write_through, f.mode,\n"
               "          type(f.buffer).__name__, f.fileno(), f is getattr(sys, '__%s__' % "
               "f.name[1:-1]))",
    "unbuffered": "# flags: -u\nimport os, sys\nsys.stdout.write('a')\nos.write(1, b'b')\n"
                  "sys.stdout.write('c')\nprint(sys.stdout.write_through)",
    "buffered": "import os, sys\nsys.stdout.write('a')\nos.write(1, b'b')\nsys.stdout.write('c')",
    "order": "# shell: \"$@\" 2>&1\nimport sys\nfor i in range(5):\n    print(i)\n"
             "    print(i, file=sys.stderr)",
    "optimised": "# flags: -O\nassert False\nprint(__debug__)",
    "optimised_twice": "# flags: -OO\ndef f():\n    'doc'\nprint(f.__doc__)",
    "x_option": "# flags: -X a=b\nimport sys\nprint(sys._xoptions)",
    "w_error": "# flags: -W error\n# status: 1\nimport warnings\nwarnings.warn('x')",
    "w_default": "import warnings\nwarnings.warn('x')\nwarnings.warn('y', DeprecationWarning)",
    "isolated": "# flags: -I\nimport sys\nprint(sys.flags.isolated, sys.path)",
    "no_site": "# flags: -s -E\nimport sys\nprint(sys.flags, sys.path)",
    "names": "print(sorted(globals()), __name__, __file__, __spec__, __package__, __doc__,\n"
             "      type(__loader__), __cached__, __builtins__)",
    "doc": "'''the text'''\nprint(__doc__)",
    "module_of_main": "import sys\nm = sys.modules['__main__']\nprint(m.__dict__ is globals(), m)\n"
                      "import __main__\nprint(__main__ is m)",
    "path": "import sys\nprint(sys.path, sys.prefix, sys.executable, sys.flags)",
    "neighbour": "import neighbour\nprint(neighbour.VALUE, neighbour.__file__)",
    "read_itself": "print(open(__file__).read())",
    "coding": "# -*- coding: latin-1 -*-\nprint(ascii('\\xe9'), 'ok')",
    "syntax_error": "# status: 1\nprint('x'\nx = = 1",
    "no_coding": "# status: 1\n# coding: nothing-like-it\nprint('x')",
    "no_line": "# status: 1\nprint('x')\n\\",
    "null_byte": "# status: 1\nprint('x')\n\0",
    "null_name": "# status: 1\nprint(nothing)",
    "exception": "# status: 1\ndef f(n):\n    return 1 / n\nf(0)",
    "chained": "# status: 1\ntry:\n    {}['a']\nexcept KeyError:\n    raise ValueError('b')",
    "group": "# status: 1\nclass MyError(Exception):\n    pass\nraise MyError('x', 1)",
    "hook": "# status: 1\nimport sys\ndef hook(t, v, b):\n    print('hook', t, v, b.tb_lineno, "
            "b.tb_frame.f_code.co_name, sys.last_value is v, sys.excepthook is hook)\n"
            "sys.excepthook = hook\n1 / 0",
    "hook_fails": "# status: 4\nimport sys\ndef hook(*a):\n    raise SystemExit(4)\n"
                  "sys.excepthook = hook\n1 / 0",
    "exit_3": "# status: 3\nimport sys\nsys.exit(3)",
    "exit_text": "# status: 1\nimport sys\nsys.exit('a reason')",
    "exit_none": "raise SystemExit",
    "exit_large": "# status: 1\nimport sys\nsys.exit(257)",
    "os_exit": "# status: 7\nimport os\nprint('lost')\nos._exit(7)",
    "atexit": "import atexit\natexit.register(print, 'last')\n"
              "atexit.register(lambda: print('first', '__file__' in globals()))\nprint('main')",
    "atexit_error": "import atexit\natexit.register(lambda: 1 / 0)\nprint('main')",
    "sigkill": "# status: -9\nimport os, signal\nprint('x', flush=True)\n"
               "os.kill(os.getpid(), signal.SIGKILL)",
    "sigterm": "# status: -15\nimport os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "segv": "# status: -11\nimport os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "abort": "# status: -6\nimport os\nos.abort()",
    "sigint": "# status: -2\nimport os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\n"
              "time.sleep(9)",
    "keyboard": "# status: -2\nraise KeyboardInterrupt",
    "handler": "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('got', a[0]))\n"
               "os.kill(os.getpid(), signal.SIGUSR1)",
    "dispositions": "import signal\nprint({int(s): str(signal.getsignal(s)).split(' at ')[0]\n"
                    "       for s in signal.valid_signals()}, signal.pthread_sigmask(0, []))",
    "nohup": "# shell: nohup \"$@\"\nimport signal, os\nprint(signal.getsignal(signal.SIGHUP))\n"
             "os.kill(os.getpid(), signal.SIGHUP)",
    "ignored_int": "# shell: trap '' INT PIPE TERM; \"$@\"\nimport signal\nprint([signal.getsignal("
                   "s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)])",
    "sent_term": "# shell: \"$@\" & sleep 0.6; kill -TERM $!; wait $!; echo $?\n"
                 "import signal, sys\n"
                 "def end(*a):\n    print('ended')\n    sys.exit(5)\n"
                 "signal.signal(signal.SIGTERM, end)\nsignal.pause()",
    "sent_usr": "# shell: \"$@\" & sleep 0.6; kill -USR1 $!; wait $! 2> /dev/null; echo $?\n"
                "import signal\nsignal.pause()",
    "alarm": "# status: -14\nimport signal\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n"
             "signal.pause()",
    "environment": "import os\nprint(list(os.environ.items()))",
    "environment_c": "import os, subprocess\nos.environ['A'] = 'b'\n"
                     "print(subprocess.check_output(['env']).decode())",
    "environment_shell": "# shell: cd /tmp; \"$@\"; cd / ; \nimport os\n"
                         "print(os.environ['PWD'], os.environ.get('OLDPWD'), os.getcwd())",
    "folder": "import os\nprint(os.getcwd(), os.readlink('/proc/self/cwd'))\nos.chdir('/')\n"
              "print(os.listdir('.') == os.listdir('/'))",
    "umask": "# shell: umask 027; \"$@\"\nimport os\nopen('made', 'w').close()\n"
             "print(oct(os.stat('made').st_mode))\nos.unlink('made')",
    "inherited": "# shell: exec 7>seven 9<<<word; \"$@\"; cat seven\nimport os\n"
                 "print(os.read(9, 99), os.get_inheritable(9))\nos.write(7, b'written\\n')",
    "descriptors": "import os\nprint(sorted(os.listdir('/proc/self/fd'), key=int))\n"
                   "print(os.open('/dev/null', 0), os.dup(1))",
    "limits": "import resource\nprint([resource.getrlimit(i) for i in range(16)])",
    "nice": "import os\nprint(os.nice(0), os.sched_getaffinity(0), os.getpriority(0, 0))",
    "closed_stdout": "# status: 1\nimport os, sys\nsys.stdout.close()\nprint('x')",
    "broken_pipe": "# shell: \"$@\" | head -1; echo ${PIPESTATUS[0]}\n"
                   "for i in range(100000):\n    print(i)",
    "full": "# shell: \"$@\" > /dev/full; echo $?\nprint('x')",
    "large": "import sys\nsys.stdout.write('y' * 5000000)",
    "bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "unicode": "print('\\u20ac \\U0001f600')",
    "surrogates": "import sys\nprint(sys.getfilesystemencoding(), sys.getdefaultencoding(),\n"
                  "      sys.stdout.errors)\nprint('\\udc80')",
    "locale": "import locale\nprint(locale.getlocale(), locale.getpreferredencoding(),\n"
              "      locale.setlocale(locale.LC_ALL))",
    "threads": "import threading, time\ndef f():\n    time.sleep(0.1)\n    print('thread')\n"
               "threading.Thread(target=f).start()\nprint(threading.active_count(),\n"
               "      threading.current_thread() is threading.main_thread())",
    "daemon_thread": "import threading, time\n"
                     "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "thread_error": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T')\n"
                    "t.start()\nt.join()",
    "asyncio": "import asyncio\nasync def main():\n    await asyncio.sleep(0.01)\n"
               "    p = await asyncio.create_subprocess_exec('echo', 'x')\n"
               "    print(await p.wait())\n"
               "asyncio.run(main())",
    "pool_spawn": "import multiprocessing as m\ndef f(x):\n    return x * x\n"
                  "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p:\n"
                  "        print(p.map(f, range(5)))",
    "pool_fork": "import multiprocessing as m\ndef f(x):\n    return x * x\n"
                 "if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p:\n"
                 "        print(p.map(f, range(5)))",
    "pool_forkserver": "import multiprocessing as m\ndef f(x):\n    return x * x\n"
                       "if __name__ == '__main__':\n"
                       "    with m.get_context('forkserver').Pool(2) as p:\n"
                       "        print(p.map(f, range(5)))",
    "spawned": "import multiprocessing as m, os, sys\ndef f(q):\n"
               "    q.put((__name__, os.getcwd(), sys.argv, __file__, sys.path[:2]))\n"
               "if __name__ == '__main__':\n    c = m.get_context('spawn')\n    q = c.Queue()\n"
               "    p = c.Process(target=f, args=(q,))\n    p.start()\n    print(q.get())\n"
               "    p.join()\n    print(p.exitcode)",
    "executor": "from concurrent.futures import ProcessPoolExecutor\ndef f(x):\n    return x + 1\n"
                "if __name__ == '__main__':\n    with ProcessPoolExecutor(2) as e:\n"
                "        print(list(e.map(f, [1, 2])))",
    "pickle": "import pickle\nclass C:\n    def __init__(self):\n        self.a = 1\n"
              "d = pickle.dumps(C())\nprint(d, pickle.loads(d).a)",
    "fork": "import os\npid = os.fork()\nif not pid:\n    print('child', flush=True)\n"
            "    os._exit(4)\nprint(os.waitpid(pid, 0)[1])",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', "
                  "'import sys; print(sys.argv, __name__); sys.exit(3)', 'x'],\n"
                  "    stdout=-1).stdout)",
    "shell_out": "import os\nprint(os.system('echo out; exit 3'))",
    "left_behind": "import subprocess\nsubprocess.Popen('sleep 0.5; echo later', shell=True)\n"
                   "print('now')",
    "left_behind_daemon": "import os, time\nif os.fork():\n    os._exit(0)\ntime.sleep(0.3)\n"
                          "os.setsid()\nprint('later')",
    "exec": "import os\nprint('before', flush=True)\n"
            "os.execvp('sh', ['sh', '-c', 'echo $0; exit 6'])"
            "\n# status: 6",
    "logging": "import logging\nlogging.warning('bare')\n"
               "logging.basicConfig(level=10, force=True)\n"
               "logging.debug('shown %s', 1)",
    "recursion": "import sys\nprint(sys.getrecursionlimit())\ndef f(n):\n"
                 "    return n and f(n - 1)\n"
                 "print(f(900))\ntry:\n    f(10 ** 6)\nexcept RecursionError as e:\n    print(e)",
    "traceback": "import traceback\ndef f():\n    try:\n        1 / 0\n    except Exception:\n"
                 "        traceback.print_exc()\nf()",
    "warn_level": "import warnings\ndef f():\n    warnings.warn('here', stacklevel=2)\nf()",
    "random": "import random\nrandom.seed(5)\nprint(random.random(), random.getrandbits(64))",
    "random_numpy": "try:\n    import numpy as np\n    np.random.seed(3)\n"
                    "    print(np.random.rand(3), np.random.default_rng(1).random(2))\n"
                    "except ImportError:\n    print('none')",
    "numpy": "try:\n    import numpy as np\n    a = np.arange(10000.).reshape(100, 100)\n"
             "    print((a @ a).sum(), np.linalg.det(np.eye(3)))\nexcept ImportError:\n"
             "    print('none')",
    "dataclass": "import dataclasses, typing\n@dataclasses.dataclass\nclass A:\n    x: int = 1\n"
                 "y: int = 3\nprint(A(), typing.get_type_hints(A), __annotations__)",
    "inspect": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), "
               "inspect.getmodule(f))",
    "runpy": "import runpy\nprint(sorted(runpy.run_path('neighbour.py')))",
    "temporary": "import tempfile, os\nwith tempfile.NamedTemporaryFile() as f:\n    "
                 "print(os.path.dirname(f.name))",
    "progress": "import sys\nfor i in range(3):\n    print(f'\\r{i}/3', end='', file=sys.stderr)\n"
                "print(file=sys.stderr)",
    "future": "from __future__ import annotations\ndef f(x: nothing):\n    pass\n"
              "print(f.__annotations__)",
    "eval_flags": "print(eval('1 / 2'), compile('x: y = 1', 's', 'exec').co_flags)",
    "cuda": "import ctypes\nd = ctypes.CDLL('libcuda.so.1')\nn = ctypes.c_int()\n"
            "print(d.cuInit(0), d.cuDeviceGetCount(ctypes.byref(n)), n.value)\n"
            "c = ctypes.c_void_p()\nprint(d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0), "
            "d.cuCtxGetCurrent(ctypes.byref(c)), c.value)",
}

# The text of -c, the words behind -m.
CODES = {"code": "import sys; print(sys.argv, __name__, sorted(globals()), sys.path[:1])",
         "code_raises": "def f():\n    raise ValueError(1)\nf()",
         "code_exits": "raise SystemExit(9)",
         "code_lines": "for i in range(2):\n    print(i)\n",
         "code_wrong": "x = = 1"}
MODULES = {"package": ["package", "a"], "package_inner": ["package.inner", "b"],
           "package_raises": ["package.raises"], "missing": ["no_such_module"],
           "library": ["json.tool", "data.json"], "timeit": ["timeit", "-h"]}
FILES = {"neighbour.py": "VALUE = 42\n", "package/__init__.py": "print('init', __name__)\n",
         "package/__main__.py": "import sys\nfrom . import inner\nfrom .inner import X\n"
                                "print(sys.argv[1:], __name__, __package__, __spec__.name, X,\n"
                                "      sorted(globals()))\n",
         "package/inner.py": "import sys\nX = 1\nif __name__ == '__main__':\n"
                             "    print(__file__, sys.argv, __spec__.name, sys.path[0])\n",
         "package/raises.py": "1 / 0\n", "data.json": '{"a": [1, 2]}'}
