#!/usr/bin/env python3
"""Make C and assembly from driver_api.tsv: generate.py WHAT SPEC OUTPUT.

One function a product; each returns the text of one file. Standard library only.
"""
import sys
import spec

HEAD = "/* Generated from driver_api.tsv by generate.py. */"
GENERIC_STUBS = 256


def rows_header(rows):
    """driver_rows.h: the row numbers, in the order of the spec."""
    lines = [HEAD, "#pragma once", "", "enum driver_row {"]
    lines += [f"\tROW_{row.abi_symbol}," for row in rows]
    lines += ["\tDRIVER_ROWS", "};", "", f"#define DRIVER_GENERIC_STUBS {GENERIC_STUBS}", ""]
    return "\n".join(lines)


def handler_name(row):
    """The C function that stands before this entry, or None for a row that is only passed on."""
    return None if row.kind == "pass" else f"{row.kind}_{row.abi_symbol}"


# The entry whose lookup is noticed, without a hook on dlsym: it is exported twice. What dlsym
# finds, the default version, is an indirect function (IFUNC), so the loader calls into us.
# Relocations, which name no version, are bound to the object's first one, a plain function: they
# may be of an object that the loader relocates before us, and an IFUNC of ours would then run too
# early.
NOTICED = "cuInit"
NOTICED_VERSION, BOUND_VERSION = "HEARTH_LOOKUP", "HEARTH_BOUND"  # of cudart.map


def noticed_stub(name):
    """The resolver behind what dlsym finds: it tells, and answers with the stub."""
    symbol = f"{name}_noticed"
    return ["\t.p2align 4", "\t.hidden speculate_looked_up", f"\t.globl {symbol}",
            f"\t.symver {symbol}, {name}@@{NOTICED_VERSION}",
            f"\t.type {symbol}, @gnu_indirect_function", f"{symbol}:", "\tendbr64",
            "\tsubq $8, %rsp", "\tcall speculate_looked_up", f"\tleaq .Lstub_{name}(%rip), %rax",
            "\taddq $8, %rsp", "\tret", f"\t.size {symbol}, .-{symbol}"]


def stubs(rows):
    """driver_stubs.S: one exported jump a row, the slots, and the table of handlers.

    A stub jumps through its slot. An empty slot leads to the resolver, which keeps every register
    that may hold an argument. The slot of a generic stub may hold the resolver's address; those are
    numbered after the rows. The table of handlers holds distances, so that it needs no
    relocation, and names every handler, so that a missing one is a link error."""
    out = [HEAD, "\t.text", "\t.cfi_startproc", ""]
    for number, row in enumerate(rows):
        name = row.abi_symbol
        if name == NOTICED:
            out += noticed_stub(name)
            name = f"{name}_bound"
            out += [f"\t.symver {name}, {row.abi_symbol}@{BOUND_VERSION}"]
        out += [f"\t.globl {name}", f"\t.type {name}, @function",
                "\t.p2align 5", f"{name}:", f".Lstub_{row.abi_symbol}:", "\tendbr64",
                f"\tmovq driver_slots+{8 * number}(%rip), %r11",
                "\ttestq %r11, %r11", "\tje 1f", "\tjmp *%r11",
                f"1:\tmovl ${number}, %r11d", "\tjmp driver_stub_resolve"]
        out += [f"\t.size {name}, .-{name}", ""]
    out += ["\t.p2align 4", "\t.hidden driver_generic_stubs", "\t.globl driver_generic_stubs",
            "\t.type driver_generic_stubs, @function", "driver_generic_stubs:"]
    for number in range(GENERIC_STUBS):
        out += ["\t.p2align 4", "\tendbr64", f"\tmovl ${len(rows) + number}, %r11d",
                f"\tjmp *driver_generic_slots+{8 * number}(%rip)"]
    out += ["\t.p2align 4", "\t.size driver_generic_stubs, .-driver_generic_stubs", ""]
    saved = ("rdi", "rsi", "rdx", "rcx", "r8", "r9", "rax")
    frame = 200
    out += ["\t.hidden driver_stub_resolve", "\t.globl driver_stub_resolve",
            "\t.type driver_stub_resolve, @function", "driver_stub_resolve:",
            f"\tsubq ${frame}, %rsp", f"\t.cfi_adjust_cfa_offset {frame}"]
    out += [f"\tmovq %{name}, {8 * i}(%rsp)" for i, name in enumerate(saved)]
    out += [f"\tmovaps %xmm{i}, {64 + 16 * i}(%rsp)" for i in range(8)]
    out += ["\tmovl %r11d, %edi", f"\tmovq {frame}(%rsp), %rsi", "\tcall route_resolve",
            "\tmovq %rax, %r11"]
    out += [f"\tmovq {8 * i}(%rsp), %{name}" for i, name in enumerate(saved)]
    out += [f"\tmovaps {64 + 16 * i}(%rsp), %xmm{i}" for i in range(8)]
    out += [f"\taddq ${frame}, %rsp", f"\t.cfi_adjust_cfa_offset -{frame}", "\tjmp *%r11",
            "\t.cfi_endproc", "\t.size driver_stub_resolve, .-driver_stub_resolve", "",
            "\t.section .rodata", "\t.p2align 2"]
    for table, target in (("driver_handler_distances", handler_name),
                          ("driver_stub_distances", lambda row: row.abi_symbol)):
        out += [f"\t.hidden {table}", f"\t.globl {table}", f"\t.type {table}, @object",
                f"{table}:"]
        for row in rows:
            name = target(row)
            out += [f"\t.hidden {name}"] if name and name != row.abi_symbol else []
            local = f".Lstub_{row.abi_symbol}" if name == row.abi_symbol else name
            out += [f"\t.long {local} - {table}" if name else "\t.long 0"]
        out += [f"\t.size {table}, .-{table}", ""]
    out += ["", "\t.bss", "\t.p2align 6"]
    for name, count in (("driver_slots", len(rows)), ("driver_generic_slots", GENERIC_STUBS)):
        out += [f"\t.hidden {name}", f"\t.globl {name}", f"\t.type {name}, @object", f"{name}:",
                f"\t.zero {8 * count}", f"\t.size {name}, .-{name}"]
    out += ["", "\t.section .note.GNU-stack,\"\",@progbits",
            "\t.section .note.gnu.property,\"a\",@note", "\t.p2align 3",
            "\t.long 4, 16, 5", "\t.asciz \"GNU\"", "\t.long 0xc0000002, 4, 3, 0", ""]
    return "\n".join(out)


def numbers(name, kind, values):
    """One constant array of numbers, wrapped."""
    lines, line = [f"const {kind} {name}[{len(values)}] = {{"], "\t"
    for value in values:
        if len(line) + len(f"{value}, ") > 95:
            lines.append(line.rstrip())
            line = "\t"
        line += f"{value}, "
    return lines + [line.rstrip(), "};", ""]


def name_blob(names):
    """All names as one text with NULs between; returns it and each name's offset."""
    offsets, parts, length = {}, [], 0
    for name in names:
        if name not in offsets:
            offsets[name] = length
            parts.append(name)
            length += len(name) + 1
    if length > 0xffff:
        raise spec.SpecError(f"the names take {length} bytes, more than 16-bit offsets reach")
    return parts, offsets


BEFORE_INIT_VARIES = 0xffff  # driver/tables.h has it too


def tables(rows):
    """driver_tables.c: names, versions, variants, and the index of public names.

    Only numbers and one text, so that nothing needs a relocation. The rows of one public name
    stand newest first, the per-thread variant before the plain one, so that the first that fits
    a request is the right one."""
    public = {}
    for number, row in enumerate(rows):
        public.setdefault(row.public_name, []).append(number)
    for group in public.values():
        group.sort(key=lambda n: (-rows[n].since, rows[n].variant == "legacy"))
    names = sorted(public)
    by_symbol = sorted(range(len(rows)), key=lambda n: rows[n].abi_symbol)
    parts, offsets = name_blob([row.abi_symbol for row in rows] + names)
    firsts, order = [], []
    for name in names:
        firsts.append(len(order))
        order += public[name]
    firsts.append(len(order))
    out = [HEAD, "#include \"driver/tables.h\"", "", "const char driver_names[] ="]
    out += [f"\t\"{part}\\0\"" for part in parts]
    out[-1] += ";"
    out += [""]
    out += numbers("driver_symbol_offsets", "uint16_t", [offsets[r.abi_symbol] for r in rows])
    out += numbers("driver_since", "uint16_t", [row.since for row in rows])
    out += numbers("driver_before_init", "uint16_t", 
                   [row.before_init if row.before_init == row.before_init_zeros
                    else BEFORE_INIT_VARIES for row in rows])
    out += numbers("driver_arity", "uint8_t", [row.arity for row in rows])
    out += numbers("driver_per_thread", "uint8_t", [int(r.variant != "legacy") for r in rows])
    out += numbers("driver_by_symbol", "uint16_t", by_symbol)
    out += [f"const uint16_t driver_public_count = {len(names)};", ""]
    out += numbers("driver_public_offsets", "uint16_t", [offsets[name] for name in names])
    out += numbers("driver_public_first", "uint16_t", firsts)
    out += numbers("driver_public_rows", "uint16_t", order)
    return "\n".join(out)


def duty(row):
    """What a `first` row means for the first result: work that gives one, a copy to the host,
    or a wait for what was begun."""
    if row.public_name in ("cuMemcpyDtoH", "cuMemcpyAtoH"):
        return "FIRST_RESULT"
    if row.public_name in ("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"):
        return "FIRST_WAIT"
    if row.public_name.startswith(("cuLaunch", "cuGraphLaunch")):
        return "FIRST_LAUNCH"
    if row.public_name.startswith("cuMemcpy"):
        return "FIRST_WORK"
    return "FIRST_OTHER"


def first_handlers(rows):
    """first_handlers.c: a handler of exact arity for each row of class `first`. All arguments of
    these entries are integers or pointers; each is passed on as the machine word it came in."""
    out = [HEAD, "#include \"preload/first_call.h\"", ""]
    for row in rows:
        if row.kind != "first":
            continue
        types = ", ".join(["uintptr_t"] * row.arity) or "void"
        named = ", ".join(f"uintptr_t a{i}" for i in range(row.arity)) or "void"
        passed = ", ".join(f"a{i}" for i in range(row.arity))
        name, number = handler_name(row), f"ROW_{row.abi_symbol}"
        out += [f"CUresult {name}({types});", f"CUresult {name}({named})", "{",
                f"\tCUresult (*real)({types}) = (CUresult (*)({types}))route_real({number});",
                "\tstruct first_call call;", "\tCUresult rc;", "",
                f"\tif (!first_call_begin(&call, {number}, {duty(row)}))",
                f"\t\treturn real({passed});",
                f"\trc = real({passed});", "\tfirst_call_end(&call, rc);",
                "\treturn rc;", "}", ""]
    return "\n".join(out)


# Which argument is 64 bytes by value: they lie on the stack, and their address is the word.
BY_VALUE = {"cuIpcOpenMemHandle": 1, "cuIpcOpenMemHandle_v2": 1, "cuIpcOpenEventHandle": 1}


def sim_exports(rows):
    """sim_exports.c: every entry of the simulated driver, of exact arity, and the table of rows.
    Arguments travel as machine words; what an entry does is said in lib/sim/sim_entries.def."""
    lines = ["/* Generated from driver_api.tsv by generate.py. */", '#include "sim/sim.h"', "",
             '#define EXPORT __attribute__((visibility("default")))', ""]
    for row in rows:
        words = [f"a{i}" for i in range(row.arity)]
        types = ["word"] * row.arity
        if row.abi_symbol in BY_VALUE:
            place = BY_VALUE[row.abi_symbol]
            types[place] = "struct sim_ipc_handle"
        parameters = ", ".join(map(" ".join, zip(types, words))) or "void"
        if row.abi_symbol in BY_VALUE:
            words[place] = f"(word)&{words[place]}"
        array = f"(const word[]){{{', '.join(words)}}}" if words else "NULL"
        lines += [f"EXPORT int {row.abi_symbol}({parameters});",
                  f"EXPORT int {row.abi_symbol}({parameters})",
                  "{", f"\treturn sim_entry_call(ROW_{row.abi_symbol}, {array});", "}"]
    lines += ["", "const struct sim_row sim_rows[DRIVER_ROWS] = {"]
    lines += [f'\t{{"{row.public_name}", "{row.abi_symbol}", {row.since}, '
              f"SIM_{row.variant.upper()}, {row.arity}, {row.before_init}, "
              f"{row.before_init_zeros}, {BY_VALUE.get(row.abi_symbol, -1)}, "
              f"(sim_function *){row.abi_symbol}}}," for row in rows]
    lines += ["};", ""]
    return "\n".join(lines)


# What libcudart asks for though newer rows exist, and families that it never asks for.
STANDIN_OLD = {"cuDeviceGetUuid": 9020, "cuDevicePrimaryCtxReset": 7000,
               "cuDevicePrimaryCtxRelease": 7000, "cuDevicePrimaryCtxSetFlags": 7000}
STANDIN_ALL = ("cuStreamGetCaptureInfo", "cuMemcpyBatchAsync", "cuGetProcAddress")
STANDIN_NEVER = ("cuTexRef", "cuSurfRef", "cuParam", "cuCheckpoint", "cuCoredump", "cuLogs",
                 "cuTensorMap", "cuGreenCtx", "cuMulticast", "cuLink", "cuFuncSetBlock",
                 "cuFuncSetShared", "cuLaunchGrid", "cuArray3D", "cuMemcpyAto", "cuMemcpyHtoA",
                 "cuMemcpyDtoA", "cuCtxAttach", "cuCtxDetach", "cuDevResource", "cuDevSm")


def standin_requests(rows):
    """standin_requests.h: what the stand-in runtime of the tests asks cuGetProcAddress for, in its
    order: public name, version, flags, ABI symbol, as libcudart 13.0 does."""
    symbols = {(row.public_name, row.since, 0 if row.variant == "legacy" else 2): row.abi_symbol
               for row in rows}
    requests = [("cuInit", 2000, 0), ("cuGetProcAddress", 11030, 0), ("cuGetProcAddress", 12000, 0)]
    newest = {}
    for row in rows:
        if row.group != "core" or row.public_name.startswith(STANDIN_NEVER):
            continue
        key = row.public_name, 0 if row.variant == "legacy" else 2
        if row.public_name in STANDIN_ALL:
            requests.append((row.public_name, row.since, key[1]))
        else:
            newest[key] = max(newest.get(key, 0), row.since)
    requests += [(name, STANDIN_OLD.get(name, since), flags)
                 for (name, flags), since in newest.items() if name != "cuInit"]
    requests.append(("cuGLGetDevices", 4010, 0))
    lines = ["/* Generated from driver_api.tsv by generate.py. */"]
    lines += [f'REQUEST("{name}", {since}, {flags}, "{symbols.get((name, since, flags), name)}")'
              for name, since, flags in requests]
    return "\n".join(lines) + "\n"


PRODUCTS = {"rows": rows_header, "stubs": stubs, "tables": tables, "first": first_handlers,
            "sim_exports": sim_exports,
            "standin_requests": standin_requests}


def main(argv):
    if len(argv) != 4 or argv[1] not in PRODUCTS:
        print(f"usage: generate.py {'|'.join(PRODUCTS)} SPEC OUTPUT", file=sys.stderr)
        return 2
    try:
        text = PRODUCTS[argv[1]](spec.read(argv[2]))
    except spec.SpecError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        return 1
    with open(argv[3], "w", encoding="ascii") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
