"""A tensor on one GPU, shared with a spawned process that works on another: both see the same
memory (CUDA IPC). Then events and a copy between the GPUs."""
from torch_common import result, torch
import rank_device


def work(queue, answers):
    """The child: reads, copies to its own GPU, writes back."""
    device = rank_device.take(1)
    shared = queue.get()
    answers.put((shared.sum().item(), shared.to(device).mul(3).sum().item()))
    shared.add_(1)
    rank_device.wait()
    answers.put("written")
    queue.get()
    del shared


def main():
    """The parent: makes the tensor, and sees what the child has done to it."""
    import torch.multiprocessing as shared_memory

    context = shared_memory.get_context("spawn")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    child = context.Process(target=work, args=(queue, answers))
    child.start()
    device = rank_device.take(0)
    values = torch.arange(4096.0, device=device)
    queue.put(values)
    result("child saw", *answers.get())
    result("child has", answers.get())
    rank_device.wait()
    result("parent sees", values.sum().item())
    other = values.to(rank_device.take(1))
    result("copied", other.sum().item())
    if device.type == "cuda":
        result("peer access", torch.cuda.can_device_access_peer(0, 1))
    queue.put("end")
    child.join()
    result("child ended with", child.exitcode)


if __name__ == "__main__":
    main()
