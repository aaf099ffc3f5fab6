"""Group calls: what the preload costs a program that never touches CUDA, a driver call, and a
launch."""
import json
import shutil
import subprocess

RUNS = 1000
ROUNDS = 21
LIMIT_EXEC_NS = 150_000
LIMIT_CALL_PS = 4_000
LIMIT_LAUNCH = 0.01
SECONDS = 200


def _json_of(command, environment):
    done = subprocess.run([str(word) for word in command], env=environment, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: exit {done.returncode}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)


def run(context):
    """Measure; holds where all limits do."""
    runs = 50 if context.simulated else RUNS
    rounds = 3 if context.simulated else ROUNDS
    results, checks = {}, {}
    for name, command in (("true", ["/bin/true"]), ("bash", [shutil.which("bash"), "-c", ":"])):
        result = _json_of([context.build / "bench/bench_exec", "-n", runs, "--json", "--preload",
                           context.preload, "--", *command], context.environment())
        results[f"exec {name}"] = result
        added = result["added_median_ns"]
        checks[f"{' '.join(command)}: {added / 1e6:+.3f} ms, at most "
               f"{LIMIT_EXEC_NS / 1e6}"] = added <= LIMIT_EXEC_NS
    result = _json_of([context.build / "bench/bench_call", "-n", rounds, "--json", "--driver",
                       context.driver],
                      context.hearth_environment("/nonexistent/socket",
                                                 LD_PRELOAD=str(context.preload),
                                                 HEARTH_DRIVER=context.driver))
    results["call"] = result
    current, launch = result["cuCtxGetCurrent"], result["cuLaunchKernel"]
    added = current["proxy_median_ps"] - current["direct_median_ps"]
    checks[f"cuCtxGetCurrent: {current['direct_median_ps'] / 1e3:.2f} ns, through the proxy "
           f"{added / 1e3:+.2f}, at most {LIMIT_CALL_PS / 1e3}"] = added <= LIMIT_CALL_PS
    share = launch["proxy_median_ps"] / launch["direct_median_ps"] - 1
    checks[f"cuLaunchKernel: {launch['direct_median_ps'] / 1e3:.1f} ns, through the proxy "
           f"{share * 100:+.2f} %, at most {LIMIT_LAUNCH * 100:.0f}"] = share <= LIMIT_LAUNCH
    for text, holds in checks.items():
        print(f"  {'holds' if holds else 'FAILS'}: {text}")
    return {"results": results, "checks": checks,
            "ok": all(checks.values()) or context.simulated}
