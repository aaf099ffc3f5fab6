"""A container as Docker makes one, without Docker: a read-only root of its own with the host's
/usr and an installed Hearth in it, PID 1, an unprivileged user, no home, 64 MB of /dev/shm. As
root it needs mount and pid namespaces; as a user, a user namespace as well."""
import os
import shutil
import subprocess
import unittest
from pathlib import Path

from harness import BUILD, DEADLINE_S

USER = 1000
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Runs as PID 1 of the new namespaces, becomes the program at its end.
# $1: root, $2: folder whose usr/ lies over the host's, $3: files for the root, $4: "ro" or "rw",
# $5: size of /dev/shm or "none", $6: folders that are volumes; the rest is the command.
ENTER = r"""
set -e
root=$1 install=$2 files=$3 access=$4 shm=$5 volumes=$6
shift 6
mount -t tmpfs -o mode=755 root "$root"
cd "$root"
mkdir usr etc proc dev tmp
chmod 1777 tmp
for link in bin sbin lib lib32 lib64 libx32; do
	[ -L "/$link" ] && cp -P "/$link" "$link"
done
[ ! -e /etc/ld.so.cache ] || cp /etc/ld.so.cache etc/
if [ -d /etc/alternatives ]; then
	mkdir etc/alternatives
	mount --bind /etc/alternatives etc/alternatives
fi
echo 'app:x:1000:1000::/nonexistent:/bin/sh' >etc/passwd
cp -dR "$files/." .
mount -t overlay -o "lowerdir=$install/usr:/usr" usr "$root/usr"
mount -t proc proc proc
for device in null zero full random urandom; do
	touch "dev/$device"
	mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
if [ "$shm" != none ]; then
	mkdir dev/shm
	mount -t tmpfs -o "size=$shm,mode=1777" shm dev/shm
fi
for volume in $volumes; do
	mkdir -p "./$volume"
	mount -t tmpfs -o mode=1777 volume "./$volume"
done
mkdir .host
pivot_root . .host
umount -l .host
rmdir .host
[ "$access" = rw ] || mount -o remount,bind,ro /
cd /
exec "$@"
"""


def install():
    """`meson install` of the build under test into BUILD/container, once per build."""
    folder = BUILD / "container"
    done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"meson install: {done.stdout}")
    return folder


def why_not():
    """Why containers cannot be made here, or None."""
    for path in ("/usr/bin/python3", "/bin/sh"):
        if not Path(path).exists():
            return f"{path} is not here"
    if not Path("/bin").is_symlink():
        return "/bin is not in /usr"
    for name in ("unshare", "pivot_root", "setpriv", "meson"):
        if not shutil.which(name):
            return f"{name} is not here"
    probe = subprocess.run([*unshare(), "sh", "-c",
                            "mount -t tmpfs t /mnt && mkdir -p /mnt/a /mnt/proc /mnt/m && "
                            "mount -t proc p /mnt/proc && "
                            "mount -t overlay -o lowerdir=/mnt/a:/usr o /mnt/m"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           stdin=subprocess.DEVNULL, check=False)
    return f"namespaces: {probe.stdout.strip()}" if probe.returncode else None


def unshare():
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *user, "--mount", "--pid", "--fork", "--kill-child"]


def as_user():
    """Becomes USER inside: as root by setpriv, in a user namespace by one more of them."""
    if os.getuid() == 0:
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs"]
    return ["unshare", "--user", f"--map-user={USER}", f"--map-group={USER}"]


class Container:
    """`folder` is the test's own; files are put into the root with add()."""

    def __init__(self, folder, installed, access="ro", shm="64m"):
        self.folder = Path(folder)
        self.installed = installed
        self.access, self.shm = access, shm
        self.files = self.folder / "files"
        self.root = self.folder / "root"
        self.volumes = []
        for path in (self.files, self.root):
            path.mkdir(exist_ok=True)

    def volume(self, path):
        """A folder that stays writable under a read-only root."""
        self.volumes.append(path)

    def add(self, source, path):
        """A copy of the file or folder `source` at `path` in the root."""
        target = self.files / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if Path(source).is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy(source, target)

    def run(self, command, env=None, cwd="/app"):
        """Run to the end as `docker run` would: PID 1, `env` and PATH its whole environment."""
        settings = [f"{name}={value}" for name, value in
                    {"PATH": SEARCH_PATH, **(env or {})}.items()]
        return subprocess.run(
            [*unshare(), "sh", "-c", ENTER, "sh", self.root, self.installed, self.files,
             self.access, self.shm, " ".join(self.volumes), *as_user(),
             "env", "-i", f"--chdir={cwd}", *settings, *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=DEADLINE_S, check=False)


REASON = why_not()
needs_container = unittest.skipIf(REASON, f"no container can be made here: {REASON}")
