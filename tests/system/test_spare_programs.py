"""Small programs come out the same, in status and every byte, natively and through a spare."""
import shlex

import harness
import spare_programs
import spares


class SpareProgramsTest(spares.SpareTest):
    def setUp(self):
        super().setUp()
        for name, text in spare_programs.FILES.items():
            path = self.work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.flags = None

    def have(self, flags):
        """A spare whose interpreter was started with these flags."""
        if flags != self.flags:
            self.hearth("spare", "stop")
            self.start(python=(spares.PYTHON, *flags))
            self.flags = flags

    def check(self, source):
        settings = spare_programs.settings_of(source)
        flags = shlex.split(settings.get("flags", ""))
        script = self.work / "program.py"  # a module's name would stand before the module
        script.write_text(source + "\n")
        self.have(flags)
        stdin = settings.get("stdin", "").encode().decode("unicode_escape").encode()
        word = script if "cd " in settings.get("shell", "") else script.name
        shown = self.assert_alike(spares.PYTHON, *flags, word,
                                  *shlex.split(settings.get("args", "")),
                                  shell=settings.get("shell"), text=stdin)
        self.assertEqual(shown[0], int(settings.get("status", 0)), shown)

    def test_scripts(self):
        for name, source in sorted(spare_programs.SCRIPTS.items(),
                                   key=lambda item: ("# flags" in item[1], item)):
            with self.subTest(program=name):
                self.check(source)

    def test_texts_of_c(self):
        self.have([])
        for name, text in spare_programs.CODES.items():
            with self.subTest(program=name):
                self.assert_alike(spares.PYTHON, "-c", text, "x", "-y")

    def test_modules(self):
        self.have([])
        for name, words in spare_programs.MODULES.items():
            with self.subTest(program=name):
                self.assert_alike(spares.PYTHON, "-m", *words)

    def test_the_programs_are_at_least_sixty(self):
        self.assertGreaterEqual(len(spare_programs.SCRIPTS), 60)


if __name__ == "__main__":
    harness.main()
