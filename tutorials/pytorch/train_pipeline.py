#!/usr/bin/env python3
"""train_pipeline.py - trains a model that `yard ckpt export` wrote, in PyTorch, by a pipeline schedule from a CSV file.

    torchrun --nproc-per-node RANKS train_pipeline.py MODEL SCHEDULE.csv TEXT [--steps N] [--batch N] [--lr X] ...

MODEL is the folder with model.safetensors and config.json.  SCHEDULE.csv is what `yard plan --print-schedule` prints:
a row per rank, a cell per turn.  TEXT is a file; its bytes are the tokens.

    row of rank 0:  0F0,0F1,0F2,0F3,0B0,...     stage 0: the embeddings and the first blocks
    row of rank 1:  ,1F0,1B0,1F1,1B1,...        stage 1: the other blocks, the last norm and the head

It prints a line for each step: the number, the loss and the norm of the gradient, as `yard train --order file
--schedule constant --val-share 0` computes them.  It was tried with PyTorch 2.15.
"""
import argparse
import json
import math
import re
import struct
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime
from torch.nn import functional as F


# ---- the model: GPT-2, cut into stages -------------------------------------------------------------------------------

class Linear(nn.Module):
    def __init__(self, saved, name):
        super().__init__()
        self.weight = nn.Parameter(saved[name + ".weight"])  # (in, out), as GPT-2 keeps it
        self.bias = nn.Parameter(saved[name + ".bias"])

    def forward(self, x):
        return x @ self.weight + self.bias


def layer_norm(saved, name):
    norm = nn.LayerNorm(saved[name + ".weight"].shape, eps=1e-5)
    norm.load_state_dict({key: saved[f"{name}.{key}"] for key in ("weight", "bias")})
    return norm


class Block(nn.Module):
    def __init__(self, saved, layer, heads):
        super().__init__()
        name = f"h.{layer}"
        self.heads = heads
        self.ln_1, self.ln_2 = layer_norm(saved, name + ".ln_1"), layer_norm(saved, name + ".ln_2")
        self.qkv, self.proj = Linear(saved, name + ".attn.c_attn"), Linear(saved, name + ".attn.c_proj")
        self.fc, self.out = Linear(saved, name + ".mlp.c_fc"), Linear(saved, name + ".mlp.c_proj")

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(C, dim=2))
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attention.transpose(1, 2).reshape(B, T, C))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Stage(nn.Module):
    """Stage `number` of `of`: tokens (B,T) or activations (B,T,C) to activations (B,T,C) or logits (B,T,V)."""

    def __init__(self, saved, config, number, of):
        super().__init__()
        layers = config["n_layer"]
        if layers % of:
            sys.exit(f"{layers} layers cannot be cut into {of} equal stages")
        each = layers // of
        self.blocks = nn.ModuleList(Block(saved, layer, config["n_head"])
                                    for layer in range(number * each, (number + 1) * each))
        self.is_first, self.is_last = number == 0, number == of - 1
        if self.is_first:
            self.wte, self.wpe = nn.Parameter(saved["wte.weight"]), nn.Parameter(saved["wpe.weight"])
        if self.is_last:
            self.ln_f = layer_norm(saved, "ln_f")
            self.head = nn.Parameter(saved.get("lm_head.weight", saved["wte.weight"]).clone())

    def forward(self, x):
        if self.is_first:
            x = self.wte[x] + self.wpe[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.head.T if self.is_last else x


def read_model(folder):
    """The tensors of model.safetensors by their names without "transformer.", and what config.json says."""
    with open(folder + "/model.safetensors", "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    saved = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            saved[name.removeprefix("transformer.")] = torch.frombuffer(
                data[begin:end], dtype=torch.float32).view(entry["shape"])
    with open(folder + "/config.json") as file:
        return saved, json.load(file)


# ---- the schedule ----------------------------------------------------------------------------------------------------

def read_schedule(path):
    """For each rank the stages that it computes, in order; and the number of micro-batches."""
    with open(path) as file:
        cells = [re.findall(r"(\d+)[FIBW](\d+)", row) for row in file]
    stages = [sorted({int(stage) for stage, _ in row}) for row in cells]
    micros = 1 + max(int(micro) for row in cells for _, micro in row)
    return stages, micros


# ---- a step ----------------------------------------------------------------------------------------------------------

def sum_tied_gradients(first, last, group):
    """GPT-2's head has the weights of the embedding: both get the sum of both gradients."""
    for parameter in [stage.wte for stage in first] + [stage.head for stage in last]:
        dist.all_reduce(parameter.grad, group=group)


def clip(parameters, counted, limit):
    """Scales gradients to a norm of at most `limit`, over all ranks; returns the norm.  0: no limit."""
    squares = sum((p.grad.double().square().sum() for p in counted), torch.zeros((), dtype=torch.float64))
    dist.all_reduce(squares)
    norm = math.sqrt(squares)
    if 0 < limit < norm:
        for p in parameters:
            p.grad.mul_(limit / norm)
    return norm


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("schedule")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=12)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--weight-decay", type=float, default=0.1)
    parser.add_argument("--clip", type=float, default=1)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    stages_of, micros = read_schedule(options.schedule)
    wanted = len(stages_of)
    if wanted != dist.get_world_size():
        sys.exit(f"{options.schedule} is for {wanted} processes: start it with --nproc-per-node {wanted}")
    if options.batch % micros:
        sys.exit(f"{options.schedule} has {micros} micro-batches, of which --batch {options.batch} is not a multiple")
    saved, config = read_model(options.model)
    of = 1 + max(max(stages) for stages in stages_of)

    modules = [Stage(saved, config, number, of) for number in stages_of[rank]]
    first, last = [m for m in modules if m.is_first], [m for m in modules if m.is_last]
    is_tied = "lm_head.weight" not in saved
    tied_group = None
    if is_tied and first and last:
        last[0].head = first[0].wte  # on the same rank they are one parameter
    elif is_tied:
        tied_group = dist.new_group([r for r, stages in enumerate(stages_of) if 0 in stages or of - 1 in stages])
    parameters = list({id(p): p for m in modules for p in m.parameters()}.values())
    counted = [p for p in parameters if not (tied_group and last and p is last[0].head)]  # in the norm, once
    optimizer = torch.optim.AdamW([
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": options.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}],
        lr=options.lr, betas=(0.9, 0.99), eps=1e-8)

    stages = [PipelineStage(m, number, of, torch.device("cpu")) for m, number in zip(modules, stages_of[rank])]
    # The loss is divided here, not the gradients by scale_grads=True: that would divide a shared parameter's twice.
    pipeline = _PipelineScheduleRuntime(stages, micros, scale_grads=False, loss_fn=lambda logits, targets:
                                        F.cross_entropy(logits.flatten(0, 1), targets.flatten()) / micros)
    pipeline._load_csv(options.schedule)

    with open(options.text, "rb") as file:
        text = torch.tensor(list(file.read()))
    size = options.batch * config["n_positions"]
    for step in range(options.steps):
        begin = step % ((len(text) - 1) // size) * size
        tokens = text[begin:begin + size].view(options.batch, -1)
        targets = text[begin + 1:begin + size + 1].view(options.batch, -1)
        optimizer.zero_grad()
        losses = []
        pipeline.step(*[tokens] * len(first), **({"target": targets, "losses": losses} if last else {}))
        if tied_group and (first or last):
            sum_tied_gradients(first, last, tied_group)
        norm = clip(parameters, counted, options.clip)
        optimizer.step()
        if last:
            print(f"step {step + 1}  loss {sum(losses).item():.6f}  norm {norm:.5f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
