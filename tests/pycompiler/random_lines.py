"""Random lines of assembly, and the memories after them. Shared by the tests of `emit`."""

from __future__ import annotations

import numpy as np

from pycompiler.code.lines import (
    BlockOperand,
    Forward,
    Instruction,
    Line,
    Literal,
    MatrixOperand,
    Move,
    Operand,
    PeOperand,
    Special,
    Step,
    mask_register,
)
from pycompiler.machine import Target, load_target

MEMORIES = ("lm0", "lm1", "grf0", "grf1", "l1bm", "l2bm", "t", "omr")
MASK = mask_register(1, load_target("mini"))
WORDS = 24  # few addresses, so that instructions depend on each other


class Lines:
    """Random lines, each of which is legal alone."""

    def __init__(self, seed: int, target: Target):
        self.rng = np.random.default_rng(seed)
        self.target = target
        self.before: set[str] = set()

    def some(self, count: int) -> list[Line]:
        makers = [self.alu, self.mau, self.immediate, self.flags, self.matrix, self.up, self.down]
        makers += [self.alu, self.mau, self.to_pe, self.from_pe, self.double, self.move]
        out: list[Line] = []
        for _ in range(count):
            line = makers[self.rng.integers(len(makers))]()
            out.append(line)
            if isinstance(line, Step):
                self.before = {i.slot for i in line.instructions}
        return out

    def pick(self, *choices: str) -> str:
        return str(self.rng.choice(choices))

    def pe(self, memory: str, mask: bool = False) -> PeOperand:
        start = int(self.rng.integers(WORDS))
        step = int(self.rng.integers(3))
        masked = MASK if mask and self.rng.random() < 0.3 else None
        return PeOperand(memory, tuple(start + step * c for c in range(4)), mask=masked)

    def source(self, memory: str) -> Operand:
        slots = [slot for slot in ("alu", "mau") if slot in self.before]
        if slots and self.rng.random() < 0.4:
            return Forward(self.pick(*slots))
        return self.pe(memory)

    def goal(self, used: set[str]) -> tuple[Operand, ...]:
        free = [m for m in ("lm0", "lm1", "grf0", "grf1") if m not in used or m.startswith("grf")]
        if self.rng.random() < 0.3:
            return (Special("nowrite"),)
        return (self.pe(self.pick(*free), mask=True),)

    def alu(self) -> Step:
        one, other = self.rng.permutation(["lm0", "lm1", "grf0", "grf1"])[:2]
        goal = self.goal({one, other})
        sources = self.source(one), self.source(other)
        return Step((Instruction("alu", self.pick("iadd", "lxor"), sources, goal),))

    def mau(self) -> Step:
        one, other = self.rng.permutation(["lm0", "lm1", "grf0", "grf1"])[:2]
        goal = self.goal({one, other})
        sources = self.source(one), self.source(other)
        return Step((Instruction("mau", self.pick("fvadd", "fvmul"), sources, goal),))

    def immediate(self) -> Step:
        goal = self.pe(self.pick("lm1", "grf0", "grf1"))
        literal = Literal(int(self.rng.integers(1 << 31)))
        return Step((Instruction("alu", "imm", (literal,), (goal,)),))

    def flags(self) -> Step:
        source = self.pe(self.pick("lm0", "grf0"))
        return Step((Instruction("alu", "ipassa", (source,), (MASK,)),))

    def matrix(self) -> Step:
        bank = self.pick("x", "y")
        if self.rng.random() < 0.5:
            into = MatrixOperand(bank, 4 * int(self.rng.integers(2)))
            return Step((Instruction("mwrite", "fmwrite", (self.source("lm1"),), (into,)),))
        goal = self.goal({"lm0", "grf1"})
        word = PeOperand("grf1", (int(self.rng.integers(WORDS)),) * 4, word=0)
        sources = (MatrixOperand(bank), word, self.source("lm0"))
        return Step((Instruction("mau", "fmfma", sources, goal),))

    def double(self) -> Step:
        """Two instructions that share a line."""
        alu = Instruction("alu", "linc", (self.pe("lm0"),), (self.pe("grf0", mask=True),))
        mau = Instruction("mau", "fvpassa", (self.pe("lm1"),), (self.pe("grf1"),))
        return Step((alu, mau))

    def block(self, memory: str, words: int, unit: int) -> BlockOperand:
        return BlockOperand(memory, unit * int(self.rng.integers(4)), words)

    def from_pe(self) -> Step:
        words = self.target.transfer("l1bmd", "from_pe").destination_words
        source = self.source(self.pick("lm0", "lm1", "grf0"))
        into = self.block("l1bm", words, words)
        return Step((Instruction("l1bm", "l1bmd", (source,), (into,)),))

    def to_pe(self) -> Step:
        words = self.target.transfer("l1bmd", "to_pe").source_words
        here = self.block("l1bm", words, words)
        goal = self.pe(self.pick("lm0", "lm1", "grf0", "grf1"), mask=True)
        return Step((Instruction("l1bm", "l1bmd", (here,), (goal,)),))

    def up(self) -> Step:
        found = self.target.transfer("l2bmd", "up")
        one = self.block("l1bm", found.source_words, found.source_words)
        other = self.block("l2bm", found.destination_words, found.destination_words)
        return Step((Instruction("l2bm", "l2bmd", (one,), (other,)),))

    def down(self) -> Step:
        found = self.target.transfer("l2bmb", "down")
        one = self.block("l2bm", found.source_words, found.source_words)
        other = self.block("l1bm", found.destination_words, found.destination_words)
        return Step((Instruction("l2bm", "l2bmb", (one,), (other,)),))

    def move(self) -> Line:
        if self.rng.random() < 0.5:
            return self.alu()
        l2bm, dram = BlockOperand("l2bm", 0, 64, l2b=0), BlockOperand("dram", 0, 64)
        pair = (l2bm, dram) if self.rng.random() < 0.5 else (dram, l2bm)
        return Move("mvp", 64, *pair)


def final(text: str, seed: int, target: Target) -> tuple[dict[str, np.ndarray], int]:
    """Return the memories after the program on random contents, and its steps."""
    rng = np.random.default_rng(seed)
    machine = target.new_machine()
    for memory in MEMORIES[:6]:
        shape = machine.read(memory, count=1).shape[:-1]
        # Small exponents: singles that do not underflow or overflow at once.
        words = rng.integers(0, 1 << 63, (*shape, 64), dtype=np.uint64)
        machine.write(memory, words & np.uint64(0xBFFFFFFFBFFFFFFF))
    program = target.assemble(text, "random.vsm")
    machine.run(program)
    found = {m: machine.read(m, count=8 if m in ("t", "omr") else 256) for m in MEMORIES}
    found["dram"] = machine.read("dram", count=64)
    return found, int(program.report()["steps"])
