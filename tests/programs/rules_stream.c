/* Rules of streams, events, captures and graphs. */
#include "rules.h"

#include <pthread.h>

static const char ptx[] =
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";

void rules_stream(void)
{
	word stream = 0, context, out = 0;
	int status = -1, number = -1;

	CALL(cuInit, 0);
	SHOW("no context", cuStreamCreate, W(&stream), 0);
	context = rules_context();
	SHOW("wrong flags", cuStreamCreate, W(&stream), 0x1000);
	SHOW("nowhere", cuStreamCreate, 0, 0);
	SHOW("", cuStreamCreate, W(&stream), 1);
	SHOW("", cuStreamQuery, stream);
	SHOW("default", cuStreamQuery, 0);
	SHOW("legacy", cuStreamQuery, 1);
	SHOW("per thread", cuStreamQuery, 2);
	SHOW("", cuStreamSynchronize, stream);
	SHOW("", cuStreamGetCtx, stream, W(&out));
	printf("its context: %d\n", out == context);
	SHOW("", cuStreamGetFlags, stream, W(&number));
	printf("flags %d\n", number);
	SHOW("", cuStreamGetPriority, stream, W(&number));
	printf("priority %d\n", number);
	SHOW("default", cuStreamIsCapturing, 0, W(&status));
	printf("capturing %d\n", status);
	SHOW("", cuStreamWaitEvent, stream, 0, 0);
	SHOW("default", cuStreamDestroy_v2, 0);
	SHOW("", cuStreamDestroy_v2, stream);
}

void rules_event(void)
{
	word start = 0, end = 0, untimed = 0;
	float ms = -1;

	rules_context();
	SHOW("wrong flags", cuEventCreate, W(&start), 0x1000);
	SHOW("", cuEventCreate, W(&start), 0);
	SHOW("", cuEventCreate, W(&end), 0);
	SHOW("no timing", cuEventCreate, W(&untimed), 2);
	SHOW("not recorded", cuEventQuery, start);
	SHOW("not recorded", cuEventSynchronize, start);
	SHOW("not recorded", cuEventElapsedTime, W(&ms), W(start), W(end));
	SHOW("", cuEventRecord, start, 0);
	SHOW("", cuEventRecord, end, 0);
	SHOW("", cuEventRecord, untimed, 0);
	SHOW("", cuEventSynchronize, end);
	SHOW("", cuEventQuery, end);
	SHOW("", cuEventElapsedTime, W(&ms), W(start), W(end));
	printf("not before: %d\n", ms >= 0);
	SHOW("no timing", cuEventElapsedTime, W(&ms), W(start), W(untimed));
	SHOW("no event", cuEventRecord, 0, 0);
	SHOW("no event", cuEventQuery, 0);
	SHOW("", cuEventDestroy_v2, start);
}

static void status_of(word stream)
{
	int status = -1, rc = CALL(cuStreamIsCapturing, stream, W(&status));

	printf("capturing: %d, %d\n", rc, status);
}

static void end(word stream)
{
	word graph = 99;
	int rc = CALL(cuStreamEndCapture, stream, W(&graph));

	printf("end: %d, %s\n", rc, !graph ? "no graph" : graph == 99 ? "unwritten" : "a graph");
}

void rules_capture(void)
{
	word stream = 0, memory = 0, library = 0, module = 0, event = 0;

	rules_context();
	CALL(cuStreamCreate, W(&stream), 1);
	CALL(cuEventCreate, W(&event), 0);
	SHOW("default stream", cuStreamBeginCapture_v2, 0, 0);
	SHOW("wrong mode", cuStreamBeginCapture_v2, stream, 7);
	end(stream);
	SHOW("", cuStreamBeginCapture_v2, stream, 0);
	status_of(stream);
	SHOW("again", cuStreamBeginCapture_v2, stream, 0);
	end(stream);
#define SPOIL(symbol, ...)                                                                         \
	CALL(cuStreamBeginCapture_v2, stream, 0);                                                  \
	SHOW("while capturing", symbol, __VA_ARGS__);                                              \
	status_of(stream);                                                                         \
	end(stream)
	SPOIL(cuMemAlloc_v2, W(&memory), 64);
	SPOIL(cuMemFree_v2, memory);
	SPOIL(cuMemHostAlloc, W(&memory), 64, 0);
	SPOIL(cuModuleLoadData, W(&module), W(ptx));
	SPOIL(cuLibraryLoadData, W(&library), W(ptx), 0, 0, 0, 0, 0, 0);
	SPOIL(cuCtxSynchronize, 0);
	SPOIL(cuStreamSynchronize, stream);
	SPOIL(cuStreamQuery, stream);
	SPOIL(cuStreamSynchronize, 0);
	SPOIL(cuEventQuery, event);
	SPOIL(cuEventSynchronize, event);
	SPOIL(cuMemGetInfo_v2, W(&memory), 0);
	SPOIL(cuDevicePrimaryCtxRetain, W(&memory), 0);
	SPOIL(cuStreamCreate, W(&memory), 0);
	SPOIL(cuEventCreate, W(&memory), 0);
#undef SPOIL
}

static word other_stream;

static void *allocate(void *mode)
{
	word memory;
	int value = (int)W(mode);

	rules_context();
	SHOW("its mode", cuThreadExchangeStreamCaptureMode, W(&value));
	printf("mode was %d\n", value);
	SHOW("in another thread", cuMemAlloc_v2, W(&memory), 64);
	return NULL;
}

static void *end_there(void *unused)
{
	rules_context();
	end(other_stream);
	return NULL;
}

static void run_thread(void *(*run)(void *), word argument)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, (void *)argument);
	pthread_join(thread, NULL);
}

void rules_modes(void)
{
	int mode = 2;
	word memory;

	rules_context();
	CALL(cuStreamCreate, W(&other_stream), 1);
	SHOW("relaxed", cuThreadExchangeStreamCaptureMode, W(&mode));
	printf("mode was %d\n", mode);
	CALL(cuStreamBeginCapture_v2, other_stream, 0);
	SHOW("relaxed thread, global capture", cuMemAlloc_v2, W(&memory), 64);
	status_of(other_stream);
	end(other_stream);
	mode = 7;
	SHOW("wrong", cuThreadExchangeStreamCaptureMode, W(&mode));
	mode = 0;
	CALL(cuThreadExchangeStreamCaptureMode, W(&mode));
	for (word capture = 0; capture < 3; capture++)
		for (word thread = 0; thread < 3; thread++) {
			printf("capture %d, thread %d\n", (int)capture, (int)thread);
			CALL(cuStreamBeginCapture_v2, other_stream, capture);
			run_thread(allocate, thread);
			status_of(other_stream);
			end(other_stream);
		}
	for (word capture = 0; capture < 3; capture++) {
		CALL(cuStreamBeginCapture_v2, other_stream, capture);
		run_thread(end_there, 0);
		end(other_stream);
	}
}

void rules_graph(void)
{
	word stream = 0, graph = 0, exec = 0, memory = 0;
	unsigned char byte = 0;
	int version = -1;

	rules_context();
	CALL(cuMemAlloc_v2, W(&memory), 64);
	CALL(cuMemsetD8_v2, memory, 1, 64);
	CALL(cuStreamCreate, W(&stream), 1);
	CALL(cuStreamBeginCapture_v2, stream, 2);
	SHOW("kept", cuMemsetD8Async, memory, 7, 64, stream);
	SHOW("", cuStreamEndCapture, stream, W(&graph));
	CALL(cuMemcpyDtoH_v2, W(&byte), memory, 1);
	printf("before the launch %d\n", byte);
	SHOW("", cuGraphInstantiateWithFlags, W(&exec), graph, 0);
	SHOW("", cuGraphLaunch, exec, stream);
	SHOW("", cuStreamSynchronize, stream);
	CALL(cuMemcpyDtoH_v2, W(&byte), memory, 1);
	printf("after it %d\n", byte);
	SHOW("no graph", cuGraphLaunch, 0, stream);
	SHOW("", cuGraphExecDestroy, exec);
	SHOW("", cuGraphDestroy, graph);
	SHOW("", cuCtxGetApiVersion, 0, W(&version));
	printf("version %d\n", version);
}
