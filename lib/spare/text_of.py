"""bootstrap.py as a C string, so that it travels inside the program: text_of.py IN NAME OUT."""
import sys

with open(sys.argv[1], "rb") as source:
    TEXT = source.read()
with open(sys.argv[3], "w", encoding="ascii") as header:
    header.write("/* Made from %s. */\n#pragma once\n\nstatic const char %s[] = {\n"
                 % (sys.argv[1].rpartition("/")[2], sys.argv[2]))
    for at in range(0, len(TEXT), 16):
        header.write("\t%s,\n" % ", ".join(map(str, TEXT[at:at + 16])))
    header.write("\t0};\n")
