"""`hearth doctor -- CMD`: would Hearth be asked, and if not, why. Each case is a program made here,
and never run: doctor only looks."""
import os
import shutil
import stat
import struct
import subprocess
import unittest
from pathlib import Path

import harness
from compiled import compile_c
from doctor_case import DoctorTest

NOBODY = 65534
SETUID_PROGRAMS = ("/usr/bin/passwd", "/usr/bin/su", "/bin/su", "/usr/bin/chfn")
VFS_CAP_REVISION_2, VFS_CAP_EFFECTIVE, CAP_NET_RAW = 0x02000000, 1, 13
EM_386, ELFCLASS32 = 3, 1


class Doctor(DoctorTest):
    # What is intercepted

    def test_a_plain_program_is_intercepted(self):
        findings = self.assert_intercepted(self.plain)
        self.assertEqual(findings["preload"]["text"], str(self.library))

    def test_is_intercepted_by_a_bare_preload(self):
        findings = self.assert_intercepted(self.plain, env=self.with_preload(self.library))
        self.assertNotIn("how", findings)

    def test_wrappers_that_pass_the_environment_are_seen_through(self):
        self.assert_intercepted("timeout", "-k", "1", "5", "nice", "-n", "3", "env", "A=1",
                                "nohup", self.plain, "--option")

    def test_an_interpreter_is_found_through_the_script(self):
        self.named("python9")
        self.assert_intercepted(self.script("a", "#!/usr/bin/env python9\n"))
        self.assert_intercepted(self.script("b", "#!/usr/bin/env -S python9 -u\n"))
        self.assert_intercepted(self.script("c", f"#!{self.dir}/a -x\n"))

    def test_launchers_hand_the_preload_on_even_where_they_are_static(self):
        static = compile_c(self.dir / "static", "-static")
        for name in ("uv", "srun", "sh"):
            with self.subTest(name=name):
                self.named(name, source=static)
                self.assert_intercepted(name, "run", "anything")

    def test_a_script_by_a_small_tools_name_is_a_script(self):
        self.named("nice", source=self.script("a", f"#!{self.plain}\n"))
        self.assertIn("script", self.assert_intercepted("nice", "-n", "1", "/nowhere/program"))

    def test_su_keeps_the_environment_unless_it_logs_in(self):
        self.named("su")
        self.assert_intercepted("su", "user", "-c", "true")
        self.assert_not_intercepted("sudo", "su", "-", "user", "-c", "true")

    def test_a_scope_of_systemd_is_here(self):
        self.named("systemd-run")
        self.assert_intercepted("systemd-run", "--user", "--scope", self.plain)
        self.assert_not_intercepted("elsewhere", "systemd-run", "--user", self.plain)

    def test_a_text_without_first_line_goes_to_the_shell(self):
        self.assertIn("shell", self.assert_intercepted(self.script("a", "exit 0\n")))

    def test_a_shell_is_a_note(self):
        findings = self.assert_intercepted("sh", "-c", "true")
        self.assertEqual(findings["shell"]["severity"], "note")

    def test_the_loader_called_as_a_program(self):
        loader = "/lib64/ld-linux-x86-64.so.2"
        self.assert_intercepted(loader, "--library-path", "/tmp", self.plain)

    # What is not

    def test_static(self):
        self.assert_not_intercepted("static", compile_c(self.dir / "program", "-static"))

    def test_static_pie(self):
        self.assert_not_intercepted("static", compile_c(self.dir / "program", "-static-pie"))

    def test_static_behind_a_script_and_wrappers(self):
        compile_c(self.dir / "program", "-static")
        script = self.script("a", f"#!{self.dir}/program\n")
        self.assert_not_intercepted("static", "timeout", "5", script)

    def privileged(self, mode=0, capabilities=False):
        """A copy that runs with more rights than the user that asks; the options to ask as him."""
        if os.geteuid():
            found = [path for path in SETUID_PROGRAMS
                     if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID & mode]
            if not found:
                self.skipTest("only root can make such a program")
            return found[0], {}
        program = Path(shutil.copy(self.plain, self.dir / "program"))
        program.chmod(0o755 | mode)
        if capabilities:
            os.setxattr(program, "security.capability", struct.pack(
                "<5I", VFS_CAP_REVISION_2 | VFS_CAP_EFFECTIVE, 1 << CAP_NET_RAW, 0, 0, 0))
        return program, {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def test_setuid(self):
        program, options = self.privileged(stat.S_ISUID)
        self.assert_not_intercepted("setuid", program, **options)

    def test_setgid(self):
        program, options = self.privileged(stat.S_ISGID)
        self.assert_not_intercepted("setgid", program, **options)

    def test_file_capabilities(self):
        program, options = self.privileged(capabilities=True)
        self.assert_not_intercepted("file-capabilities", program, **options)

    def test_setuid_of_the_user_that_asks_changes_nothing(self):
        program = shutil.copy(self.plain, self.dir / "program")
        os.chmod(program, 0o4755)
        self.assert_intercepted(program)

    def test_musl(self):
        program = compile_c(self.dir / "program",
                            "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        self.assert_not_intercepted("musl", program)

    @unittest.skipUnless(shutil.which("musl-gcc"), "no musl-gcc here")
    def test_musl_by_its_own_compiler(self):
        subprocess.run(["musl-gcc", "-o", self.dir / "program", f"{self.plain}.c"], check=True,
                       timeout=harness.DEADLINE_S)
        self.assert_not_intercepted("musl", self.dir / "program")

    def test_32_bit(self):
        program = Path(shutil.copy(self.plain, self.dir / "program"))
        header = bytearray(program.read_bytes())
        header[4] = ELFCLASS32
        header[18] = EM_386
        program.write_bytes(header)
        self.assert_not_intercepted("32-bit", program)

    def test_another_machine(self):
        program = Path(shutil.copy(self.plain, self.dir / "program"))
        header = bytearray(program.read_bytes())
        header[18] = 183  # EM_AARCH64
        program.write_bytes(header)
        self.assert_not_intercepted("foreign", program)

    def test_a_loader_that_does_not_exist(self):
        program = compile_c(self.dir / "program",
                            "-Wl,--dynamic-linker=/nowhere/ld-linux-x86-64.so.2")
        self.assert_not_intercepted("interpreter", program)

    def test_env_i(self):
        findings = self.assert_not_intercepted("env-i", "env", "-i", self.plain)
        self.assertIn("hearth run", findings["env-i"]["remedy"])
        self.assert_not_intercepted("env-i", "env", "-", "A=1", self.plain)
        self.assert_not_intercepted("env-i", "env", "--ignore-environment", self.plain)

    def test_env_i_in_a_first_line(self):
        script = self.script("a", f"#!/usr/bin/env -S -i {self.plain}\n")
        self.assert_not_intercepted("env-i", script)

    def test_env_i_is_mended_by_hearth_run_behind_it(self):
        self.assert_intercepted("env", "-i", f"HEARTH_DRIVER={self.driver}", self.hearth, "run",
                                "--", self.plain)

    def test_env_u(self):
        self.assert_not_intercepted("env-unset", "env", "-u", "LD_PRELOAD", self.plain)
        self.assert_not_intercepted("env-unset", "env", "--unset=LD_PRELOAD", self.plain)

    def test_a_list_that_takes_the_place_of_ours(self):
        self.assert_not_intercepted("overwritten", "env", "LD_PRELOAD=/lib/libother.so",
                                    self.plain)

    def test_hearth_0(self):
        self.assert_not_intercepted("off", "env", "HEARTH=0", self.plain)
        self.assert_not_intercepted("off", self.plain, env={**self.env, "HEARTH": "0"})

    def test_sudo(self):
        self.named("sudo")
        self.assert_not_intercepted("sudo", "sudo", "-u", "nobody", "A=1", self.plain)
        self.assert_intercepted("sudo", "-E", self.hearth, "run", self.plain)

    def test_a_setuid_wrapper_drops_the_preload_for_what_it_starts(self):
        program, options = self.privileged(stat.S_ISUID)
        if not options:
            self.skipTest("only root can make such a program")
        shutil.copy(self.plain, self.dir / "nice")
        (self.dir / "nice").chmod(0o4755)
        self.assert_not_intercepted("sudo", self.dir / "nice", self.plain, **options)

    def test_another_machine_or_container(self):
        for name in ("ssh", "docker", "podman"):
            with self.subTest(name=name):
                self.named(name)
                self.assert_not_intercepted("elsewhere", name, "run", "--rm", "image", "true")

    def test_asan_runtime(self):
        compile_c(self.dir / "libasan.so.8", "-Wl,-soname,libasan.so.8", shared=True)
        program = compile_c(self.dir / "program", "-Wl,--no-as-needed",
                            self.dir / "libasan.so.8", f"-Wl,-rpath,{self.dir}")
        self.assert_not_intercepted("asan", program)
        findings = self.assert_intercepted(
            program, env={**self.env, "ASAN_OPTIONS": "verify_asan_link_order=0"})
        self.assertEqual(findings["asan"]["severity"], "note")

    def test_a_program_that_is_not_there(self):
        self.assert_not_intercepted("not-found", "no-such-program-anywhere")
        self.assert_not_intercepted("not-found", self.dir / "nothing")

    def test_scripts_that_lead_to_each_other(self):
        self.script("a", f"#!{self.dir}/b\n")
        self.script("b", f"#!{self.dir}/a\n")
        self.assert_not_intercepted("too-deep", self.dir / "a")

    # Drivers by other ways

    def test_a_search_path_to_a_real_driver_is_a_note(self):
        program = compile_c(self.dir / "program", f"-L{self.driver.parent}", "-Wl,--no-as-needed",
                            "-lcuda", f"-Wl,-rpath,{self.driver.parent}",
                            "-Wl,--disable-new-dtags")
        findings = self.assert_intercepted(program)
        self.assertEqual(findings["rpath"]["severity"], "note")
        self.assertIn(str(self.driver), findings["rpath"]["text"])

    def test_a_needed_driver_by_its_path(self):
        nameless = compile_c(self.dir / "libcuda.so.1", shared=True, text="int cuInit;")
        program = compile_c(self.dir / "program", "-Wl,--no-as-needed", nameless)
        findings = self.assert_intercepted(program)
        self.assertEqual(findings["needed-path"]["severity"], "note")

    def test_a_driver_opened_by_its_path_is_a_warning(self):
        text = 'const char *path = "/opt/driver/libcuda.so.1"; int main(void) { return !path; }'
        findings = self.assert_intercepted(compile_c(self.dir / "program", text=text))
        self.assertEqual(findings["absolute-path"]["severity"], "warning")
        self.assertIn("/opt/driver/libcuda.so.1", findings["absolute-path"]["text"])

    def test_a_library_that_opens_the_driver_by_its_path_is_a_note(self):
        compile_c(self.dir / "libother.so", shared=True,
                  text='const char *other = "/opt/driver/libcuda.so.1";')
        program = compile_c(self.dir / "program", "-Wl,--no-as-needed",
                            self.dir / "libother.so")
        findings = self.assert_intercepted(program)
        self.assertEqual(findings["absolute-path"]["severity"], "note")

    # The preload list

    def test_a_missing_library(self):
        (self.dir / "bin").mkdir()
        hearth = shutil.copy(self.hearth, self.dir / "bin/hearth")
        done = self.run_program(hearth, "doctor", "--", self.plain)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"libhearth.so is not found", done.stdout)

    def test_a_preload_that_is_not_there(self):
        env = self.with_preload(self.dir / "libhearth.so")
        self.assert_not_intercepted("preload", self.plain, env=env)

    def test_a_preload_that_is_no_library(self):
        (self.dir / "libhearth.so").write_text("nothing")
        env = self.with_preload(self.dir / "libhearth.so")
        self.assert_not_intercepted("preload", self.plain, env=env)

    def test_another_missing_preload_is_a_warning(self):
        env = self.with_preload("/nowhere/libother.so")
        findings = self.assert_intercepted(self.plain, env=env)
        self.assertEqual(findings["preload-other"]["severity"], "warning")

    def test_another_harmless_preload_is_a_note(self):
        other = compile_c(self.dir / "libother.so", shared=True, text="int other;")
        findings = self.assert_intercepted(self.plain, env=self.with_preload(other))
        self.assertEqual(findings["preload-other"]["severity"], "note")

    def test_another_preload_with_hooks_is_a_warning(self):
        other = compile_c(self.dir / "libother.so", shared=True, text="int cuInit;")
        findings = self.assert_intercepted(self.plain, env=self.with_preload(other))
        self.assertEqual(findings["preload-other"]["severity"], "warning")

    def test_another_preload_by_the_drivers_name(self):
        env = self.with_preload(self.driver)
        self.assert_not_intercepted("preload-other", self.plain, env=env)

    # Surroundings

    def test_an_injected_tool_is_a_warning(self):
        findings = self.assert_intercepted(
            self.plain, env={**self.env, "CUDA_INJECTION64_PATH": str(self.library)})
        self.assertEqual(findings["injection"]["severity"], "warning")
        self.named("nsys")
        self.assertIn("injection", self.assert_intercepted("nsys", "profile", self.plain))
        self.named("ncu", source=self.script("a", "#!/bin/sh\n"))
        self.assertIn("injection", self.assert_intercepted("ncu", self.plain))

    def test_mps_is_a_note(self):
        (self.dir / "control").touch()
        findings = self.assert_intercepted(
            self.plain, env={**self.env, "CUDA_MPS_PIPE_DIRECTORY": str(self.dir)})
        self.assertEqual(findings["mps"]["severity"], "note")

    def test_a_driver_setting_that_names_no_file(self):
        status, findings = self.doctor(env={**self.env, "HEARTH_DRIVER": "/nowhere/libcuda.so.1"})
        self.assertEqual((status, findings["driver-setting"]["severity"]), (1, "problem"))

    def test_hidden_devices_are_a_warning(self):
        _, findings = self.doctor(env={**self.env, "CUDA_VISIBLE_DEVICES": "-1"})
        self.assertEqual(findings["visible-devices"]["severity"], "warning")

    def test_a_log_that_can_not_be_written(self):
        for log in ("/nowhere/log", str(self.plain / "log")):
            _, findings = self.doctor(env={**self.env, "HEARTH_LOG": log})
            self.assertEqual(findings["log"]["severity"], "warning")
        for log in ("/dev/null", str(self.dir / "%p.log"), "/nowhere/%h/log"):
            _, findings = self.doctor(env={**self.env, "HEARTH_LOG": log})
            self.assertNotIn("log", findings)

    def test_a_place_where_no_broker_can_start(self):
        del self.env["HEARTH_SOCKET"]
        _, findings = self.doctor()
        self.assertEqual(findings["broker"]["severity"], "note")
        (self.dir / "run/hearth").mkdir(mode=0o755)
        (self.dir / "run/hearth").chmod(0o755)
        _, findings = self.doctor()
        self.assertEqual(findings["broker"]["severity"], "warning")
        self.assertIn(f"{self.dir}/run/hearth", findings["broker"]["text"])
        _, findings = self.doctor(env={**self.env, "HEARTH_SOCKET": "/" + "x" * 200})
        self.assertEqual(findings["broker"]["severity"], "warning")
        gone = self.dir / "gone"
        for socket, severity in ((gone / "broker", "warning"), (self.dir / "broker", "note")):
            _, findings = self.doctor(env={**self.env, "HEARTH_SOCKET": str(socket)})
            self.assertEqual(findings["broker"]["severity"], severity, findings["broker"])
        _, findings = self.doctor(env={**self.env, "HEARTH_SOCKET": str(gone / "broker")})
        self.assertIn(f"{gone}: No such file or directory", findings["broker"]["text"])

    # How it is asked

    def test_without_a_command_all_is_well(self):
        status, findings = self.doctor()
        self.assertEqual((status, self.answer["intercepted"], self.answer["command"]),
                         (0, None, None), findings)

    def test_wrong_options_are_usage_errors(self):
        for words in (["--no-such"], ["--root"], ["--root", self.dir / "nothing"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_program(self.hearth, "doctor", *words).returncode, 2)

    def test_people_read_one_line_each_with_its_remedy_below(self):
        done = self.run_program(self.hearth, "doctor", "--", "env", "-i", self.plain)
        lines = done.stdout.decode().splitlines()
        at = next(i for i, line in enumerate(lines) if "env-i" in line)
        self.assertRegex(lines[at], r"^problem  env-i +`env -i` drops LD_PRELOAD$")
        self.assertRegex(lines[at + 1], r"^ +-> env -i \.\.\. hearth run PROGRAM")
        self.assertRegex(lines[-1], r"^problem  command +env would not be intercepted$")


if __name__ == "__main__":
    harness.main()
