"""What was loaded ahead and is handed over: the program gets what it would have had, once, and only
where everything is as it was."""
import os
import shutil

import harness
from harness import main
from speculation import READY, STEPS, SpeculationTest

PLUGIN = harness.PROGRAMS / "image_plugin_1.so"
OTHER = harness.PROGRAMS / "image_plugin_2.so"
BARE = harness.PROGRAMS / "image_plugin_bare.so"
IMAGES = f"images={PLUGIN}"
LEARN = ("sleep=40", "lookup", "init", "retain=0", IMAGES)
START = (READY, "init", "retain=0", IMAGES)


class PrefetchTest(SpeculationTest):
    def prefetch(self, *steps, taken=None, start=START, **env):
        """The steps, which came out as plain ones do; so many images were handed over."""
        done = self.compare_steps(*start, *steps, **env)
        done.taken = done.messages.count("is handed over")
        if taken is not None:
            self.assertEqual(done.taken, taken, done.messages)
        return done


class Kinds(PrefetchTest):
    KINDS = ("lib", "heaplib", "keptlib", "mod", "modfat", "modex", "heapmod")
    LEARNED = (*LEARN, *(f"{kind}={i}" for i, kind in enumerate(KINDS)),
               *(f"launch={i}" for i in range(len(KINDS))))

    def test_every_kind_is_handed_over(self):
        steps = [f"{kind}={i}" for i, kind in enumerate(self.KINDS)]
        uses = [f"{use}={i}" for use in ("launch", "func", "twice", "capture", "unload", "unload")
                for i in range(len(self.KINDS))]
        done = self.prefetch(*steps, *uses, "maps", taken=len(self.KINDS))
        self.assertIn(f"prefetch: {len(self.KINDS)} of {len(self.KINDS)} images", done.messages)

    def test_only_as_they_were_loaded(self):
        self.prefetch("mod=0", "lib=3", "heaplib=2", "keptlib=1", "modfat=3", "modex=4",
                      "heapmod=0", "optlib=0,0,0", "optlib=0,1,0",
                      *(f"launch={i}" for i in range(9)), taken=0)

    def test_that_an_image_is_kept_is_true_or_not(self):
        """Some pass a pointer for true."""
        self.prefetch("optlib=0,1,140737488355328", "launch=0", "optlib=3,1,0", taken=1)

    def test_options_without_values(self):
        learned = (*LEARN, "novalues=0", "keptlib=1", "launch=0", "launch=1")
        self.with_options(learned, "novalues=0", "keptlib=1", taken=2)
        self.with_options(learned, "keptlib=0", "heaplib=0", "novalues=1", taken=0)

    def test_options_for_the_compiler_that_are_plain_numbers(self):
        learned = (*LEARN, "jitlib=0,7,3", "jitlib=1,14,0", "launch=0", "launch=1")
        self.with_options(learned, "jitlib=0,7,3", "jitlib=1,14,0", taken=2)
        self.with_options(learned, "jitlib=0,7,2", "jitlib=0,14,3", "jitlib=1,4,0", "heaplib=1",
                          taken=0)

    def test_options_for_the_compiler_that_are_not(self):
        learned = (*LEARN, "jitlib=0,4,0", "jitlib=1,7,4294967296", "jitlib=2,99,1", "launch=0")
        self.with_options(learned, "jitlib=0,4,0", "jitlib=1,7,4294967296", "jitlib=2,99,1",
                          "heaplib=0", taken=0)

    def with_options(self, learned, *loads, taken):
        state = self.learn(STEPS, *learned)
        uses = [f"{use}={i}" for use in ("launch", "unload") for i in range(len(loads))]
        done = self.compare(STEPS, *START, *loads, *uses, "maps", state=self.state(state))
        self.assertEqual(done.messages.count("is handed over"), taken, done.messages)

    def test_the_records_say_so(self):
        done = self.prefetch("lib=0", "mod=3", "lib=0", SIMCUDA_TIME="library_mib=40,kernel=0",
                             SIMCUDA_SPEED="1", start=("sleep=2500", *START))
        loads = [record for record in done.records if record.get("call", "").find("Load") > 0]
        self.assertEqual([(record["call"], record["how"]) for record in loads],
                         [("cuLibraryLoadData", "prefetched"), ("cuModuleLoadData", "prefetched"),
                          ("cuLibraryLoadData", "cold")])
        self.assertGreater(loads[1]["hidden_us"], 10000)
        self.assertEqual(loads[0]["object"], PLUGIN.name)
        end = done.records[-1]
        self.assertEqual((end["images_asked"], end["images_adopted"]), (3, 2))

    def test_before_init_nothing_shows(self):
        self.prefetch("lib=0", "lib=0", "mod=3", "launch=0",
                      start=(IMAGES, READY, "lib=0", "init", "retain=0"), taken=2)

    def test_without_a_context_of_its_own(self):
        self.prefetch("lib=0", "mod=3", "retain=0", "lib=0", "mod=3", "launch=0", "launch=2",
                      "launch=3", start=(READY, "init", IMAGES), taken=2)

    def test_wrong_arguments(self):
        self.prefetch("wrong", "lib=0", "wrong", "unload=0", "wrong", taken=1)

    def test_a_fault_shows_where_it_would(self):
        self.prefetch("lib=0", "fault=0", "lib=0", "mod=3", "heaplib=1", "launch=2", taken=None)

    def test_a_module_belongs_to_its_context(self):
        self.prefetch("create=0", "mod=3", "launch=0", "lib=0", "launch=1", "destroy", "lib=0",
                      "mod=3", "launch=2", "launch=3", taken=2)

    def test_a_fork_child_has_none_of_it(self):
        self.prefetch("lib=0", "fork", "lib=0", "unload=0", "heaplib=1", "mod=3", taken=3)

    def test_a_fork_child_before_init(self):
        self.prefetch("init", "retain=0", IMAGES, "lib=0", "launch=0", start=(READY, "fork"),
                      taken=1)

    def test_many_threads(self):
        for _ in range(5):
            self.prefetch("loads=8", "lib=0", "launch=0")


class NotHandedOver(PrefetchTest):
    LEARNED = (*LEARN, "lib=0", "lib=1", "mod=2", "launch=0", "launch=2")
    STEPS = ("lib=0", "mod=2", "launch=0", "launch=1", "unload=0", "unload=1")

    def test_control(self):
        self.prefetch(*self.STEPS, taken=2)

    def test_switched_off(self):
        done = self.prefetch(*self.STEPS, taken=0, HEARTH_PREFETCH="off")
        self.assertNotIn("prefetch:", done.messages)
        self.assert_speculated(done)

    def test_a_variable_that_loads_read_has_changed(self):
        done = self.prefetch("env=CUDA_BINARY_LOADER_THREAD_COUNT=2", *self.STEPS, taken=0)
        self.assertIn("prefetch: CUDA_BINARY_LOADER_THREAD_COUNT changed", done.messages)

    def test_a_variable_that_is_as_it_was(self):
        self.prefetch("env=CUDA_BINARY_LOADER_THREAD_COUNT=2",
                      "unenv=CUDA_BINARY_LOADER_THREAD_COUNT", "env=ANYTHING=1", *self.STEPS,
                      taken=2)

    def test_a_squash(self):
        for change in ("env=CUDA_VISIBLE_DEVICES=0", "close", "replace"):
            self.prefetch(*self.STEPS, taken=0, start=(READY, change, *START[1:]))

    def test_a_context_of_other_flags(self):
        self.prefetch(*self.STEPS, "memory", taken=0,
                      start=(READY, "init", "flags=0,4", "retain=0", IMAGES))

    def test_eager_loading(self):
        done = self.prefetch(*self.STEPS, taken=0, CUDA_MODULE_LOADING="EAGER")
        self.assertNotIn("images after", done.messages)

    def test_everything_is_compiled(self):
        done = self.prefetch(*self.STEPS, taken=0, CUDA_FORCE_PTX_JIT="1")
        self.assertNotIn("images after", done.messages)

    def test_no_room_for_them(self):
        done = self.prefetch(*self.STEPS, HEARTH_PREFETCH_MIB="0")
        self.assertIn("prefetch: no room for more", done.messages)
        self.assertLess(done.taken, 2)

    def test_the_driver_refuses(self):
        self.prefetch(*self.STEPS, taken=0,
                      SIMCUDA_FAIL="cuLibraryLoadData:2/other,cuModuleLoadData:2/other")
        self.prefetch(*self.STEPS, taken=2, SIMCUDA_FAIL="cuKernelGetFunction:2/other,"
                      "cuLibraryGetKernel:2/other,cuFuncLoad:2/other,cuModuleGetFunction:2/other")

    def test_another_library_of_that_name(self):
        library = self.dir / "images.so"
        shutil.copy(PLUGIN, library)
        state = self.learn(STEPS, *LEARN[:-1], f"images={library}", "lib=0", "lib=1", "launch=0")
        steps = (READY, "init", "retain=0", f"images={library}", "lib=0", "lib=1", "launch=0")
        done = self.compare(STEPS, *steps, state=self.state(state))
        self.assertEqual(done.messages.count("is handed over"), 2)
        shutil.copy(OTHER, self.dir / "new")
        os.replace(self.dir / "new", library)
        done = self.compare(STEPS, *steps, state=self.state(state))
        self.assertEqual(done.messages.count("is handed over"), 0)

    def test_a_library_without_a_build_id(self):
        state = self.learn(STEPS, *LEARN[:-1], f"images={BARE}", "lib=0", "lib=1")
        done = self.compare(STEPS, READY, "init", "retain=0", f"images={BARE}", "lib=0", "lib=1",
                            "launch=0", state=state)
        self.assertEqual(done.messages.count("is handed over"), 2)


class Limits(PrefetchTest):
    """Some are settled when the first code comes into a context."""
    LEARNED = (*LEARN, "lib=0", "limit=2,65536", "mod=1", "launch=0", "launch=1")
    STEPS = ("lib=0", "mod=1", "launch=0", "launch=1", "limit=2,65536", "unload=0", "unload=1")

    def test_a_program_that_sets_one_has_nothing_loaded_ahead(self):
        done = self.prefetch("lib=0", "limit=2,65536", *self.STEPS[1:], taken=0)
        self.assertNotIn("images after", done.messages)

    def test_one_that_nobody_expected(self):
        state = self.learn(STEPS, *LEARN, *self.STEPS[:4])
        for limits in (("limit=2,65536",), ("limit=1,4096", "limit=2,65536"), ("limit=0,1024",)):
            done = self.compare(STEPS, *START, *limits, *self.STEPS, state=self.state(state))
            self.assertEqual(done.messages.count("is handed over"), 0 if limits[0] != "limit=0,1024"
                             else 2, done.messages)
        for wait in (2, 6, 10, 20):
            self.compare(STEPS, f"sleep={wait}", *START[1:], "limit=2,65536", *self.STEPS,
                         state=self.state(state), SIMCUDA_SPEED="0.1",
                         SIMCUDA_TIME="library_mib=150,kernel=10,exit=1,release=5")


class Ranks(PrefetchTest):
    """What one rank learned is loaded ahead on another one's device."""
    DEVICES = "2"
    LEARNED = ()

    def test_another_rank(self):
        steps = ("lib=0", "mod=1", "launch=0", "launch=1")
        state = self.learn(STEPS, *LEARN[:3], "retain=0", IMAGES, *steps, LOCAL_RANK="0")
        done = self.compare(STEPS, READY, "init", "retain=1", IMAGES, *steps, state=state,
                            LOCAL_RANK="1")
        self.assertEqual(done.messages.count("is handed over"), 2, done.messages)


class Ages(PrefetchTest):
    LEARNED = (*LEARN, "lib=0", "lib=1")

    def test_what_was_not_asked_for_lately(self):
        state = self.state()
        for expected in (2, 2, 1, 1):
            done = self.under(STEPS, *START, "lib=0", state=state)
            self.assertIn(f"prefetch: {expected} of {expected} images", done.messages)


class Ends(PrefetchTest):
    """Of libraries, of contexts, and of the program."""
    LEARNED = (*LEARN, "lib=0", "mod=1", "heaplib=2", "lib=3", "launch=0", "launch=1", "launch=2")

    def test_an_unloaded_library_is_unmapped(self):
        self.prefetch("lib=0", "lib=3", "mod=1", "heaplib=2", "unload=0", "unload=1", "maps",
                      taken=4)

    def test_it_stays_mapped_as_long_as_it_lives(self):
        self.prefetch("lib=0", "lib=3", "unload=1", "sleep=1300", "launch=0", "func=0", "unload=0",
                      "unload=0", taken=2, HEARTH_GIVE_BACK="1")

    def test_a_second_load_is_a_real_one(self):
        self.prefetch("lib=0", "lib=0", "unload=0", "launch=1", "lib=0", "launch=2", "unload=1",
                      "launch=2", "unload=2", taken=1)

    def test_a_reset_first(self):
        self.prefetch("reset=0", "lib=0", "mod=1", "heaplib=2", "launch=0", "retain=0", "lib=3",
                      "mod=1", "launch=3", "launch=4", "memory", taken=0)

    def test_a_reset_later(self):
        self.prefetch("lib=0", "mod=1", "launch=0", "launch=1", "reset=0", "state=0", "launch=0",
                      "retain=0", "launch=0", "lib=3", "unload=0", "launch=2", "unload=2", taken=2)

    def test_the_last_release(self):
        self.prefetch("lib=0", "mod=1", "release=0", "state=0", "lib=3", "retain=0", "launch=0",
                      "launch=2", "mod=1", "launch=3", taken=2)

    def test_a_release_that_is_not_the_last(self):
        self.prefetch("retain=0", "lib=0", "release=0", "mod=1", "launch=1", "release=0",
                      "release=0", "retain=0", "lib=3", "launch=2", taken=2)

    def test_while_they_are_loaded(self):
        ends = (("reset=0",), ("release=0",), ("release=0", "retain=0"), ("env=A=1",),
                ("flags=0,2", "release=0", "retain=0"), ("reset=0", "end=exit"), ("end=_exit",),
                ("end=exit",), ("end=abort",), ("end=kill",), ("end=exec",),
                ("fork",), ("vfork",), ("launch=0", "reset=0"), ("unload=0", "unload=1"))
        for wait in (8, 14, 22, 35):
            for end in ends:
                with self.subTest(f"{end} after {wait} ms"):
                    self.prefetch("lib=0", *end, "lib=3", "launch=1", "mod=1", "state=0",
                                  start=(f"sleep={wait}", *START[1:]), SIMCUDA_SPEED="0.1",
                                  SIMCUDA_TIME="library_mib=150,kernel=10,exit=1,release=5")

    def test_before_the_context_is_asked_for(self):
        for wait in (14, 22, 35):
            for steps in (("end=exit",), ("flags=0,4", "retain=0"), ("reset=0", "retain=0"),
                          ("release=0", "retain=0"), ("create=0", "retain=0")):
                with self.subTest(f"{steps} after {wait} ms"):
                    self.prefetch(*steps, IMAGES, "lib=0", "mod=1", "launch=0", "launch=1",
                                  start=(f"sleep={wait}", "init"), SIMCUDA_SPEED="0.1",
                                  SIMCUDA_TIME="library_mib=150,kernel=10,exit=1,release=5")

    def test_an_exit_waits_for_one_call_at_most(self):
        done = self.prefetch("end=exit", SIMCUDA_SPEED="1", start=("sleep=180", *START[1:]),
                             SIMCUDA_TIME="library_mib=2000,init_cold=0,retain=10,kernel=0")
        calls = [record for record in done.records if record["event"] == "exit"]
        self.assertEqual(len(calls), 1)


class Created(PrefetchTest):
    LEARNED = ("sleep=40", "lookup", "init", "create=0,4", IMAGES, "lib=0", "mod=1", "launch=0",
               "launch=1")

    def test_in_a_created_context(self):
        self.prefetch("lib=0", "mod=1", "launch=0", "launch=1", "destroy", "launch=0", "create=0,4",
                      "launch=0", "mod=1", "launch=2", start=(READY, "init", "create=0,4", IMAGES),
                      taken=2)

    def test_destroyed_first(self):
        self.prefetch("destroy", "lib=0", "create=0,4", "mod=1", "launch=0", "launch=1", taken=0,
                      start=(READY, "init", "create=0,4", IMAGES))


class InProgress(PrefetchTest):
    LEARNED = (*LEARN, "lib=4", "lib=5", "lib=6", "mod=3", "launch=0")
    SLOW = {"SIMCUDA_SPEED": "1", "SIMCUDA_TIME": "library_mib=60,init_cold=1,init_idle=0,init=1,"
            "retain=10,release=0,exit=0,kernel=0,first_launch=0"}

    def test_one_in_progress_is_waited_for(self):
        """lib=4 takes 60 ms, lib=5 240."""
        done = self.prefetch("lib=5", "launch=0", start=("sleep=160", *START[1:]), **self.SLOW)
        if "prefetch: 0 of" not in done.messages:
            self.assertEqual(done.taken, 1, done.messages)

    def test_one_not_begun_is_the_programs(self):
        done = self.prefetch("lib=6", "launch=0", taken=0, start=("sleep=30", *START[1:]),
                             **self.SLOW)
        self.assertRegex(done.messages, "prefetch: [0-3] of 4 images")

    def test_nothing_is_loaded_beside_running_kernels(self):
        done = self.prefetch("heaplib=0", "launch=0", "sleep=600",
                             start=("sleep=30", *START[1:]), taken=0, **self.SLOW)
        self.assertRegex(done.messages, "prefetch: [01] of 4 images")

    def test_a_capture_elsewhere_is_none_of_its_affair(self):
        log = self.dir / "calls"
        self.under(STEPS, *START, "lib=5", SIMCUDA_LOG=str(log), SIMCUDA_SPEED="0")
        calls = log.read_text().splitlines()
        mode = next(i for i, line in enumerate(calls) if "ExchangeStreamCaptureMode" in line)
        load = next(i for i, line in enumerate(calls) if '"cuLibraryLoadData"' in line)
        self.assertLess(mode, load)


class GivenBack(PrefetchTest):
    LEARNED = (*LEARN, "lib=7", "mod=6", "heaplib=0", "launch=0", "launch=1")

    def test_what_nobody_asks_for(self):
        """32 and 8 MiB."""
        soon = self.prefetch("lib=0", start=START, taken=0)
        self.assertNotIn("is given back", soon.messages)
        done = self.prefetch("sleep=1500", "memory", "lib=7", "mod=6", "memory", "maps", taken=0,
                             HEARTH_GIVE_BACK="1")
        self.assertIn("prefetch: 3 images are given back", done.messages)

    def test_with_the_context(self):
        self.prefetch("memory", "lib=7", "mod=6", "launch=0", "launch=1", "memory", taken=0,
                      start=("sleep=1600", *START[1:]), HEARTH_GIVE_BACK="1")

    def test_what_is_asked_for_keeps_the_others(self):
        self.prefetch("sleep=600", "lib=7", "sleep=600", "mod=6", "sleep=1400", "heaplib=0",
                      taken=2, HEARTH_GIVE_BACK="1")

    def test_asked_for_while_it_is_given_back(self):
        for wait in (980, 1000, 1020):
            self.prefetch(f"sleep={wait}", "lib=7", "mod=6", "launch=0", "launch=1", "unload=0",
                          HEARTH_GIVE_BACK="1")


if __name__ == "__main__":
    main()
