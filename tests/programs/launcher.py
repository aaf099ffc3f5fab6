"""Stands for torchrun and `accelerate launch` where torch cannot be had: starts the processes that
they would start, as they start them, with the variables that they set (torch 2.15's
distributed/elastic, agent/server/local_elastic_agent.py and multiprocessing/subprocess_handler.py;
accelerate 1.15's utils/launch.py). Which one is decided by the name that it is called by:

    torchrun --nproc-per-node N PROGRAM [ARGUMENT...]
    accelerate launch [--multi_gpu --num_processes N] PROGRAM [ARGUMENT...]
"""
import argparse
import os
import signal
import subprocess
import sys
import uuid


def torchrun_environment(rank, count):
    numbers = {name: str(rank) for name in ("LOCAL_RANK", "RANK", "ROLE_RANK")}
    numbers.update({name: str(count)
                    for name in ("LOCAL_WORLD_SIZE", "WORLD_SIZE", "ROLE_WORLD_SIZE")})
    return {**numbers, "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": "default",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "1",
            "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0",
            "TORCHELASTIC_RUN_ID": RUN_ID, "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_ERROR_FILE": "", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}


def start_ranks(count, words, more):
    """One interpreter for each, in a session of its own; one that fails ends them all."""
    ranks = [subprocess.Popen([sys.executable, "-u", *words], start_new_session=True,
                              env={**os.environ, **more, **torchrun_environment(rank, count)})
             for rank in range(count)]
    failed = 0
    while ranks and not failed:
        pid, status = os.wait()
        failed = os.waitstatus_to_exitcode(status)
        ranks = [rank for rank in ranks if rank.pid != pid]
    for rank in ranks:
        os.killpg(rank.pid, signal.SIGTERM)
        rank.wait()
    return 1 if failed else 0


def torchrun(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--nproc-per-node", type=int, default=1)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    return start_ranks(options.nproc_per_node, options.words, {})


def accelerate(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--multi_gpu", action="store_true")
    parser.add_argument("--num_processes", type=int, default=1)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    if words[0] != "launch":
        parser.error(f"'{words[0]}' is not launch")
    options = parser.parse_args(words[1:])
    more = {"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "NO",
            "ACCELERATE_DYNAMO_MODE": "default", "ACCELERATE_DYNAMO_USE_FULLGRAPH": "False",
            "ACCELERATE_DYNAMO_USE_DYNAMIC": "False", "ACCELERATE_USE_CPU": "False",
            "OMP_NUM_THREADS": "1"}
    if options.multi_gpu:
        return start_ranks(options.num_processes, options.words, more)
    return subprocess.run([sys.executable, *options.words], env={**os.environ, **more},
                          check=False).returncode


RUN_ID = str(uuid.uuid4())
if __name__ == "__main__":
    LAUNCHERS = {"torchrun": torchrun, "accelerate": accelerate}
    sys.exit(LAUNCHERS[os.path.basename(sys.argv[0])](sys.argv[1:]))
