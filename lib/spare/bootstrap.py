# One of Hearth's spares: a python that has imported, and waits for the one program that it will
# run. Given to the interpreter as the text of -c, so that its module level is the only frame below
# the program's own. 3 is a socket to the process that holds it (hold.c), 4 a file for the names of
# what it has read, 5 the page that libhearth.so has mapped (lib/profile/spare_page.h). It must
# leave nothing of its own in the program's modules, descriptors and names.
import sys

AHEAD_BEGUN = 1


def spare_wait():
    import _imp
    import _signal
    import _socket
    import builtins
    import io
    import posix

    at_start = frozenset(sys.modules)
    control = _socket.socket(fileno=3)

    def tell(text):
        control.send(text)

    def decode(entry):
        return entry.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())

    def encode(text):
        return text.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())

    def leave(*_):
        posix._exit(0)

    if sys.version_info < (3, 7):
        tell(b"e" + b"it is older than Python 3.7")
        leave()

    # The first argument is "-c", natively too; the program's replace them all.
    names, sys.argv[1:] = sys.argv[1:], []
    # A path is no module: the program's are to be written there.
    taught = names.pop() if names and names[-1].startswith("/") else None
    environ = __import__("os").environ
    environment = dict(environ._data)
    try:
        # The folder of a program comes first on its path; ours is no folder of any program.
        first = [] if getattr(sys.flags, "safe_path", False) or sys.flags.isolated else [""]
        if first and sys.path[:1] == first:
            del sys.path[0]
        for name in names:
            __import__(name)
    except BaseException as fault:
        text = "%s: %s: %s" % (name, type(fault).__name__, fault)
        tell(b"e" + text.encode("utf-8", "replace")[:1000])
        leave()

    def site_folders():
        """Those that a later start would have looked into, had they been there."""
        site = sys.modules.get("site")
        user = [site.USER_SITE] if site and site.ENABLE_USER_SITE and site.USER_SITE else []
        return user + site.getsitepackages() if site else []

    def names_in(folder):
        try:
            return posix.listdir(folder)
        except OSError:
            return []

    def read_names():
        """Files that what is loaded here came from, and folders that could bring others."""
        paths = {encode(sys.executable)}
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            for path in (getattr(module, "__file__", None), getattr(spec, "origin", None)):
                if isinstance(path, str) and path.startswith("/"):
                    paths.add(encode(path))
        for path in sys.path + site_folders():
            if path.startswith("/"):
                paths.add(encode(path))
                paths.update(encode(path + "/" + name) for name in names_in(path)
                             if name.endswith(".pth"))
        if sys.prefix != sys.base_prefix:
            paths.add(encode(sys.prefix) + b"/pyvenv.cfg")
        with io.open("/proc/self/maps", "rb") as maps:
            for line in maps:
                path = line.split(None, 5)[5:]
                # What is mapped shared is written on purpose: a driver's own files.
                if path and path[0].startswith(b"/") and line.split()[1].endswith(b"p") and \
                        not path[0].startswith((b"/memfd:", b"/dev/", b"/SYSV")):
                    paths.add(path[0].rstrip(b"\n"))
        return sorted(paths)

    def wait_for_what_is_done_ahead():
        """While libhearth.so is at work, descriptors come and go."""
        import time
        for _ in range(3000):
            if int.from_bytes(posix.pread(5, 4, 0), "little") != AHEAD_BEGUN:
                posix.close(5)
                return
            time.sleep(0.02)
        tell(b"wa context ahead does not come to be")
        leave()

    def open_numbers():
        numbers = {int(name) for name in posix.listdir("/proc/self/fd")} - {0, 1, 2, 3}
        return {number for number in numbers if is_open(posix, number)}

    for stream in sys.stdout, sys.stderr:
        stream.flush()  # what an import has printed is not the program's
    wait_for_what_is_done_ahead()
    imported_environment = dict(environ._data)
    text = b"".join(path + b"\0" for path in read_names())
    while text:
        text = text[posix.write(4, text):]
    posix.close(4)
    # Names that a file in the program's own folder would have taken from us.
    imported = {name.partition(".")[0] for name in sys.modules if name not in at_start}
    imported -= set(sys.builtin_module_names)
    suffixes = {".py", ".pyc", *_imp.extension_suffixes()}
    tell(b"r")

    def receive():
        """A request and its descriptors, or None at the end."""
        space = _socket.CMSG_SPACE(4 * 4)
        flags = _socket.MSG_CMSG_CLOEXEC
        head, beside = control.recvmsg(64, space, flags)[:2]
        if not head:
            leave()
        fds, count = [], int.from_bytes(head[:4], "little")
        while True:
            for _, _, numbers in beside:
                fds += [int.from_bytes(numbers[at:at + 4], "little")
                        for at in range(0, len(numbers) - 3, 4)]
            if len(fds) >= count:
                break
            head, beside = control.recvmsg(64, space, flags)[:2]
            if not head:
                leave()
        size = posix.fstat(fds[0]).st_size
        text = b""
        while len(text) < size:
            part = posix.pread(fds[0], size - len(text), len(text))
            if not part:
                leave()
            text += part
        # What comes before is for who holds us.
        words = iter(text[int.from_bytes(text[:4], "little") + 4:].split(b"\0"))

        def take(convert):
            return [convert(next(words)) for _ in range(int(next(words)))]
        request = {"kind": decode(next(words)), "target": decode(next(words)),
                   "umask": int(next(words)), "ignored": int(next(words)),
                   "leads": int(next(words))}
        request["argv"] = take(decode)
        request["words"] = take(decode)
        request["numbers"] = take(int)
        request["environment"] = take(bytes)
        return request, fds

    def why_not(request, fds):
        """What keeps this program from being run here as it natively would, or None."""
        if (open_numbers() - set(fds)) & set(request["numbers"]):
            return "a descriptor of its is in use"
        here = posix.getcwd()
        posix.fchdir(fds[1])
        try:
            if request["kind"] == "script":
                request["file"] = path = absolute(request["target"])
                request["folder"] = real_folder(path)
                # By a descriptor it would be one of ours; and a pipe can be read once.
                if posix.stat(path).st_mode & 0o170000 != 0o100000 or \
                        (real_folder(path, False) + "/").startswith(("/dev/fd/", "/proc/")):
                    return "no file with a name of its own"
                with io.open(path, "rb") as file:
                    request["source"] = file.read()
                if path.endswith(".pyc") or b"PK\x05\x06" in request["source"][-65557:] or \
                        not is_text(request["source"]):
                    return "no source text"
            elif request["kind"] == "module":
                request["folder"] = posix.getcwd()
            else:
                request["folder"] = ""
            if first:
                for name in posix.listdir(request["folder"] or "."):
                    head, dot, tail = name.partition(".")
                    if head in imported and (not dot or dot + tail in suffixes):
                        return "%s stands before an imported module" % name
        except OSError as fault:
            return str(fault)
        finally:
            posix.chdir(here)
        return None

    def absolute(path):
        return path if path.startswith("/") else posix.getcwd().rstrip("/") + "/" + path

    def real_folder(path, follows=True):
        import posixpath
        if follows:
            path = posixpath.realpath(path)
        return posixpath.realpath(posixpath.dirname(path))

    def is_text(source):
        """What compile() takes in bytes that python does not take in a file is left out."""
        try:
            source.decode("utf-8")
        except UnicodeDecodeError:
            head = b" ".join(source[:4096].splitlines()[:2])
            return b"coding" in head and b"utf" not in head.lower()
        return True

    while True:
        request, fds = receive()
        reason = why_not(request, fds)
        if not reason:
            break
        for number in fds:
            posix.close(number)
        tell(b"n" + reason.encode("utf-8", "replace")[:500])
    tell(b"y")
    if control.recv(1) != b"g":
        leave()
    control.detach()
    posix.close(3)

    # What a start natively sets from what it inherits.
    posix.fchdir(fds[1])
    posix.umask(request["umask"])
    if not request["leads"]:
        posix.setpgid(0, posix.getppid())
    # Nothing is put over a number that is not the program's: the driver's lie anywhere.
    wanted = set(request["numbers"])
    moved, left = [], fds[:2]
    for number in fds[2:]:
        while number in wanted:
            left.append(number)
            number = posix.dup(number)
        moved.append(number)
    for number in left:
        posix.close(number)
    for number, at in zip(moved, request["numbers"]):
        posix.dup2(number, at, True)
        posix.close(number)
    for number in range(1, _signal.NSIG):
        if request["ignored"] >> number & 1:
            _signal.signal(number, _signal.SIG_IGN)
    set_environment(posix, environ, request["environment"], environment, imported_environment)
    for finder in list(sys.path_importer_cache.values()):
        if hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    if "multiprocessing.process" in sys.modules:
        try:
            folder = posix.getcwd()
        except OSError:
            folder = None
        sys.modules["multiprocessing.process"].ORIGINAL_DIR = folder
    if "logging" in sys.modules:
        import time
        is_in_ns = sys.version_info >= (3, 13)
        sys.modules["logging"]._startTime = time.time_ns() if is_in_ns else time.time()
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        open_again(io, getattr(sys, name), name, number)
    sys.argv[:] = request["argv"]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = request["words"]
    if first:
        sys.path.insert(0, request["folder"])
    teach = teacher(posix, taught, environ, request["folder"]) if taught else None
    return make_main(posix, builtins, request) + (teach,)


def is_open(posix, number):
    try:
        posix.fstat(number)
        return True
    except OSError:
        return False


def set_environment(posix, environ, entries, before, after):
    """The program's, and what the imports have changed, as they would have."""
    wanted = {}
    for entry in entries:
        name, _, value = entry.partition(b"=")
        wanted.setdefault(environ.encodekey(name.decode("utf-8", "surrogateescape")), value)
    for name in before:
        if name not in after:
            wanted.pop(name, None)
    wanted.update((name, value) for name, value in after.items() if before.get(name) != value)
    for name in list(environ._data):
        posix.unsetenv(name)
        del environ._data[name]
    for name, value in wanted.items():
        posix.putenv(name, value)
        environ._data[name] = value


def teacher(posix, path, environ, folder):
    """What writes down, at the program's end, what a spare is to import for the next one: modules
    that came from where python looks by itself, in their order. A program that changes its
    environment may do so for what it imports then: for that one nothing is done ahead."""
    process, started = posix.getpid(), dict(environ._data)
    known = set(sys.modules)
    places = tuple(place.rstrip("/") + "/" for place in sys.path
                   if place.startswith("/") and place != folder)

    def is_importable(name, module):
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None)
        return name not in known and getattr(spec, "name", None) == name and \
            isinstance(origin, str) and origin.startswith(places) and \
            not (folder and origin.startswith(folder.rstrip("/") + "/"))

    def teach():
        if posix.getpid() != process:
            return
        if dict(environ._data) != started:
            lines = ["hearth spare 1: never: it changes its environment"]
        else:
            lines = ["hearth spare 1: imports"]
            lines += [name for name, module in list(sys.modules.items())
                      if isinstance(name, str) and is_importable(name, module)]
        made = "%s.%d" % (path, process)
        file = posix.open(made, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC,
                          0o600)
        text = "".join(line + "\n" for line in lines).encode("ascii", "replace")
        while text:
            text = text[posix.write(file, text):]
        posix.close(file)
        posix.rename(made, path)
    return teach


def open_again(io, text, name, number):
    """As create_stdio of CPython's pylifecycle.c does, into the same object."""
    writes = number > 0
    through = text.write_through
    bare = through and writes
    binary = io.open(number, "wb" if writes else "rb", 0 if bare else -1, None, None, None, False)
    raw = binary if bare else binary.raw
    raw.name = "<%s>" % name
    encoding, errors = text.encoding, text.errors
    is_line = not through and (raw.isatty() or number == 2 and sys.version_info >= (3, 9))
    text.__init__(binary, encoding, errors, "\n", is_line, through)
    text.mode = "w" if writes else "r"


def make_main(posix, builtins, request):
    """A fresh __main__, as it is before the program's first line."""
    main = type(sys)("__main__")
    names = main.__dict__
    names.clear()
    names.update(__name__="__main__", __doc__=None, __package__=None)
    names["__loader__"] = sys.modules["_frozen_importlib"].BuiltinImporter
    names["__spec__"] = None
    if sys.version_info < (3, 14):
        names["__annotations__"] = {}
    names["__builtins__"] = builtins
    kept = sys.modules["__main__"]
    sys.modules["__main__"] = main

    def again():
        posix.execve(sys.executable, request["words"],
                     dict(entry.split(b"=", 1) for entry in request["environment"]))
    if request["kind"] == "module":
        import runpy
        return kept, names, runpy._run_module_as_main, (request["target"], True)
    if request["kind"] == "code":
        return kept, names, spare_code, (request["target"] + "\n", "<string>", again)
    loader = sys.modules["_frozen_importlib_external"].SourceFileLoader
    names["__file__"] = name = request["file" if sys.version_info >= (3, 9) else "target"]
    names["__cached__"] = None
    names["__loader__"] = loader("__main__", name)
    return kept, names, spare_code, (request["source"], name, again)


def spare_code(source, name, again):
    """The program's code: for the frame below to run. What is wrong with a text python says in
    other words where it reads the file itself: nothing has run yet, so it does."""
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except Exception:
        again()
    if name == "<string>" and sys.version_info >= (3, 13):
        import linecache
        # By its name in the first of these versions, by the code itself later.
        linecache._register_code(name if name in linecache.cache else code, source, name)
    return code


def spare_taught(teach):
    """Whatever the program has left of python, its end is its own."""
    try:
        teach()
    except BaseException:
        pass


def spare_failed(fault, depth):
    """Python shows the fault once it has left this file's frame, which nobody is to see."""
    if isinstance(fault, SystemExit):
        return
    shown = sys.excepthook

    def hook(kind, value, trace):
        sys.excepthook = shown
        for _ in range(depth):
            trace = trace and trace.tb_next
        sys.last_traceback = trace
        shown(kind, value.with_traceback(trace), trace)
    sys.excepthook = hook


spare = spare_wait()
spare_depth = 1
try:
    if spare[2] is spare_code:
        spare_depth = 2
        spare_text = spare_code(*spare[3])
        spare_depth = 1
        exec(spare_text, spare[1])
    else:
        spare[2](*spare[3])
except BaseException as spare_fault:
    spare_failed(spare_fault, spare_depth)
    raise
finally:
    if "__file__" in spare[1] and spare[2] is spare_code:
        spare[1].pop("__file__", None)
        spare[1].pop("__cached__", None)
    if spare[4]:
        spare_taught(spare[4])
