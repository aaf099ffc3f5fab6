"""doc/containers: the Dockerfile, the compose file and the pod, each run as it says in a container
with an installed Hearth and the simulated driver."""
import re
import shutil
import unittest

import container
import harness
import small_yaml
from dockerfile import Dockerfile

EXAMPLES = harness.SOURCE / "doc/containers"
TRAINED = b"trained on 523776 numbers\n"
DRIVER = "/opt/driver/libcuda.so.1"
MACHINE = {"HEARTH_DRIVER": DRIVER, "LD_LIBRARY_PATH": "/opt/driver",
           "SIMCUDA_MACHINE": "/dev/shm/machine"}


def load(name):
    return small_yaml.load((EXAMPLES / name).read_text())


@container.needs_container
class Examples(harness.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.installed = container.install()

    def container(self, volumes=(), **options):
        made = container.Container(self.dir, self.installed, **options)
        made.add(harness.SIM, DRIVER)
        made.add(harness.SOURCE / "tests/programs/train.py", "/app/train.py")
        for path in volumes:
            made.volume(path)
        return made

    def assert_trained(self, done, times=1):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, TRAINED * times, b""))

    def dockerfile(self):
        text = (EXAMPLES / "Dockerfile").read_text()
        # pip's part is test_wheel.py's; what it installs is in the container's /usr here.
        kept = [line for line in text.splitlines()
                if not line.startswith(("RUN pip install --no-index", "COPY hearth_cuda-"))]
        self.assertEqual(len(text.splitlines()) - len(kept), 2)
        return Dockerfile("\n".join(kept))

    def test_the_dockerfile(self):
        made = self.container(volumes=["/state"])
        self.assert_trained(self.dockerfile().run(made, env=MACHINE))

    def test_a_state_folder_that_cannot_be_made_does_no_harm(self):
        self.assert_trained(self.dockerfile().run(self.container(), env=MACHINE))

    def run_with_probe(self, made, entry, words, probe, env):
        """The probe is asked until it says yes, then the program runs; all inside."""
        script = f"{' '.join(probe)} >/dev/null && exec \"$@\""
        self.assertEqual(probe[-2:], ["--wait", "0"])
        return made.run([*entry, "sh", "-c", script, "sh", *words], env={**MACHINE, **env})

    def test_the_compose_file(self):
        service = load("compose.yaml")["services"]["train"]
        image = self.dockerfile()
        self.assertEqual((int(service["user"]), service["read_only"]), (container.USER, True))
        volumes = [entry.partition(":")[2] for entry in service["volumes"]] + service["tmpfs"]
        made = self.container(volumes=volumes, shm=service["shm_size"])
        self.assertEqual(service["healthcheck"]["test"][0], "CMD")
        done = self.run_with_probe(made, image.entrypoint, image.command,
                                   service["healthcheck"]["test"][1:],
                                   {**image.env, **service["environment"]})
        self.assert_trained(done)

    def test_the_pod(self):
        pod = load("pod.yaml")
        self.assertEqual((pod["apiVersion"], pod["kind"]), ("v1", "Pod"))
        program, = pod["spec"]["containers"]
        self.assertEqual(program["securityContext"]["runAsUser"], container.USER)
        self.assertEqual({mount["name"] for mount in program["volumeMounts"]},
                         {volume["name"] for volume in pod["spec"]["volumes"]})
        made = self.container(volumes=[mount["mountPath"] for mount in program["volumeMounts"]])
        done = self.run_with_probe(made, program["command"], program["args"],
                                   program["readinessProbe"]["exec"]["command"],
                                   {entry["name"]: entry["value"] for entry in program["env"]})
        self.assert_trained(done)

    def test_the_probe_says_no_without_a_gpu(self):
        probe = load("pod.yaml")["spec"]["containers"][0]["readinessProbe"]["exec"]["command"]
        done = self.container(volumes=["/tmp"]).run(
            ["hearth", "entrypoint", "--", *probe],
            env={**MACHINE, "SIMCUDA_DEVICES": "0"})
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_what_was_learned_stays_in_the_volume(self):
        env = {**MACHINE, "HEARTH_STATE_DIR": "/state"}
        done = self.container(volumes=["/state", "/tmp"]).run(
            ["hearth", "entrypoint", "--", "sh", "-c", "python3 train.py; python3 train.py; "
             "hearth profile list --json; hearth report --json -n 9"], env=env)
        self.assertEqual(done.stdout.count(b'"program": "train.py"'), 3, done.stdout)


    def test_a_profile_in_an_image(self):
        text = (EXAMPLES / "README.md").read_text()
        script = re.search(r"-c \\\n\t'(.*)' >train.profile$", text, re.M).group(1)
        learnt = self.container(access="rw").run(
            ["sh", "-c", script], env={**MACHINE, "HEARTH_STATE_DIR": "/tmp/state"})
        self.assertEqual((learnt.returncode, learnt.stderr), (0, TRAINED))
        (self.dir / "train.profile").write_bytes(learnt.stdout)
        # RUN, with the image's files in a folder.
        image = self.dir / "image"
        shutil.copytree(self.installed, image, symlinks=True)
        run = re.search(r"^RUN (hearth .*)$", text, re.M).group(1).split()
        self.assertEqual(run[0], "hearth")
        words = [re.sub("^/usr", f"{image}/usr", re.sub("^/tmp/", f"{self.dir}/", word))
                 for word in run[1:]]
        done = self.run_program(harness.HEARTH, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        fresh = self.dir / "fresh"
        fresh.mkdir()
        made = container.Container(fresh, str(image), access="rw")
        made.add(harness.SIM, DRIVER)
        made.add(harness.SOURCE / "tests/programs/train.py", "/app/train.py")
        done = made.run(["hearth", "profile", "list"],
                        env={**MACHINE, "HEARTH_STATE_DIR": "/tmp/state"})
        self.assertIn(b"train.py", done.stdout, done.stderr)


class SmallYaml(unittest.TestCase):
    def test_reads(self):
        text = "a: 1\n# no\nb:\n  - c: x y\n    d: [\"e\"]\n  - f:\n      g: true\nh:\ni: \"2\"\n"
        self.assertEqual(small_yaml.load(text), {
            "a": 1, "b": [{"c": "x y", "d": ["e"]}, {"f": {"g": True}}], "h": None, "i": "2"})

    def test_refuses(self):
        for text in ("a: |\n  b\n", "a: &x 1\n", "a\n", " a: 1\n"):
            with self.subTest(text=text), self.assertRaises(ValueError):
                small_yaml.load(text)


if __name__ == "__main__":
    harness.main()
