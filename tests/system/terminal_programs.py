"""Programs at a terminal that are to come out the same natively and through a spare: NAME =
(source, steps). A step is what is waited for and what is typed then, or the terminal's new size.
RUN is the program's command line, with RUN_IN for one inside another shell."""
SLEEP = "import time\ntry:\n    print('began', flush=True)\n    time.sleep(60)\n"
UNTIL_STOPPED = 'until [ "$(jobs -s)" ]; do sleep 0.05; done; jobs -l'

PROGRAMS = {
    "input": ("print('hello', input('who? '))", [("who? ", "mx\x7fe\n")]),
    "line_editing": ("import readline\nprint('hello', input('who? '))",
                     [("who? ", "bc\x01a\x05d\n")]),
    "end_of_input": ("import sys\nprint(sys.stdin.read().upper())", [(None, "a\nb\n\x04")]),
    "nothing_to_read": ("input('who? ')", [("who? ", "\x04")]),
    "password": ("import getpass\nprint(len(getpass.getpass()))", [("Password: ", "secret\n")]),
    "two_questions": ("print(input('a? ') + input('b? '))", [("a? ", "1\n2\n")]),
    "single_key": ("import os, sys, termios, tty\nold = termios.tcgetattr(0)\ntty.setraw(0)\n"
                   "os.write(1, b'key? ')\ngot = os.read(0, 1)\n"
                   "termios.tcsetattr(0, termios.TCSADRAIN, old)\nprint(got)",
                   [("key? ", "\x03")]),
    "progress": ("import sys, time\ntry:\n    from tqdm import tqdm\n"
                 "    bar = tqdm(range(5), mininterval=0, bar_format='{l_bar}{bar}{n_fmt}')\n"
                 "except ImportError:\n    bar = range(5)\nfor i in bar:\n"
                 "    print(f'\\r{i}\\x1b[A\\n', end='', file=sys.stderr)\n", []),
    "streams": ("import os, sys\nfor f in sys.stdin, sys.stdout, sys.stderr:\n"
                "    print(f, f.errors, f.line_buffering, f.write_through, f.isatty(), f.mode)\n"
                "print(os.get_terminal_size(), os.get_inheritable(1), os.ctermid())", []),
    "groups": ("import os, sys\nprint(os.getpgrp() == os.getpid() == os.tcgetpgrp(1), flush=True)\n"
               "with open('/dev/tty', 'r+b', 0) as t:\n    t.write(b'key? ')\n"
               "    print(t.readline(), os.tcgetpgrp(t.fileno()) == os.getpgrp())",
               [("key? ", "x\n")]),
    "settings": ("import termios\nprint(termios.tcgetattr(0), termios.tcgetwinsize(1)\n"
                 "      if hasattr(termios, 'tcgetwinsize') else 0)", []),
    "settings_left": ("import termios\na = termios.tcgetattr(0)\na[3] &= ~termios.ECHOK\n"
                      "a[6][termios.VEOF] = b'\\x02'\ntermios.tcsetattr(0, 0, a)", []),
    "large": ("import sys\nsys.stdout.write('0123456789abcdef\\n' * 8000)", []),
    "interrupted": (SLEEP + "finally:\n    print('left', flush=True)", [("began", "\x03")]),
    "interrupt_caught": (SLEEP + "except KeyboardInterrupt:\n    print('caught')",
                         [("began", "\x03")]),
    "interrupted_input": ("try:\n    input('who? ')\nexcept KeyboardInterrupt:\n"
                          "    print('caught')", [("who? ", "abc\x03")]),
    "quit": (SLEEP + "finally:\n    print('never')", [("began", "\x1c")]),
    "child_interrupted": ("import signal, subprocess\n"
                          "signal.signal(signal.SIGINT, lambda *a: None)\n"
                          "print(subprocess.call(['bash', '-c', 'trap \"echo child; "
                          "exit 3\" INT; echo began; sleep 60']))", [("began", "\x03")]),
    "stopped": ("import signal, time\nwoken = []\n"
                "signal.signal(signal.SIGCONT, lambda *a: woken.append(1))\nprint('began')\n"
                "while not woken:\n    time.sleep(0.01)\nprint('woken')",
                [("began", "\x1a"), ("Stopped", "fg\n")]),
    "stopped_input": ("print('hello', input('who? '))",
                      [("who? ", "a\x1a"), ("Stopped", "fg\n"), ("fg\nRUN", "me\n")]),
    "stop_caught": ("import os, signal\nsignal.signal(signal.SIGTSTP, "
                    "lambda *a: print('not now'))\n"
                    "print('began', flush=True)\nsignal.pause()\nos.kill(os.getpid(), "
                    "signal.SIGSTOP)\nprint('on')", [("began", "\x1a"), ("Stopped", "fg\n")]),
    "stop_ignored": ("import signal, time\nsignal.signal(signal.SIGTSTP, "
                     "signal.SIG_IGN)\n" + SLEEP + "except KeyboardInterrupt:\n    print('ended')",
                     [("began", "\x1a\x03")]),
    "background": ("import os, time\nprint('began', flush=True)\nwhile os.tcgetpgrp(0) == "
                   "os.getpgrp():\n    time.sleep(0.01)\nprint('hello', input(), "
                   "os.tcgetpgrp(0) == os.getpgrp())",
                   [("began", "\x1a"), ("Stopped", "bg; " + UNTIL_STOPPED + "\n"),
                    ("Stopped (tty input)", "fg\n"), ("fg\nRUN", "me\n")]),
    "killed_stopped": (SLEEP + "finally:\n    print('never')",
                       [("began", "\x1a"), ("Stopped", "kill -9 %1; sleep 0.3\n")]),
    "resized": ("import os, signal\nsignal.signal(signal.SIGWINCH, lambda *a: 0)\n"
                "print('began', flush=True)\nsignal.pause()\nprint(os.get_terminal_size())",
                [("began", (30, 290))]),
    "killed": ("import os\nos.kill(os.getpid(), 9)", []),
    "exit": ("raise SystemExit(7)", []),
    "raises": ("1 / 0", []),
}

# Other command lines: NAME = (line, source, steps). RUN stands for the program's.
LINES = {
    "pipeline": ("RUN | cat", "import sys, time\ngot = input()\ntime.sleep(0.2)\n"
                 "print(got, sys.stdout.isatty(), sys.stdin.isatty(), flush=True)\ninput()",
                 [(None, "abc\n"), ("abc", "\x03")]),
    "from_file": ("RUN < p.py", SLEEP + "except KeyboardInterrupt:\n    print(input())",
                  [("began", "\x03")]),
    "to_file": ("RUN > out 2>&1 < /dev/null; cat out",
                "with open('/dev/tty', 'r+b', 0) as t:\n    t.write(b'key? ')\n"
                "    print(t.readline())", [("key? ", "x\n")]),
    "pager": ("RUN | python3 -c 'print(open(\"/dev/tty\").readline())'",
              "import time\ntime.sleep(0.5)", [(None, "mine\n")]),
    "nested_shell": ("RUN", "import subprocess\nsubprocess.call(['env', 'PS1=PROMPT> ', 'bash', "
                     "'--norc', '--noprofile', '-i'])", [("PROMPT> ", "sleep 60\n"),
                     ("sleep 60", "\x1a"), ("Stopped", "exit 4\n"), ("stopped jobs", "exit 4\n")]),
    "script": ("bash -c 'RUN_IN; echo not shown' bash $OPTION",
               SLEEP + "finally:\n    print('left', flush=True)",
               [("began", "\x03")]),
    "script_asks": ("bash -c 'RUN_IN; read x; echo $x' bash $OPTION", "input('who? ')",
                    [("who? ", "a\nb\n")]),
    "started_behind": ("RUN & " + UNTIL_STOPPED, "print('hello', input())",
                       [("Stopped (tty input)", "fg\n"), ("fg\nRUN", "me\n")]),
}
