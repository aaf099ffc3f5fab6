/* Graphs: the list of work that a capture kept. Runs on the program's threads with sim.lock held.
 */
#include "sim/sim.h"

#include <stdlib.h>

struct graph {
	struct sim_object object;
	struct sim_work *work;
};

static void free_graph(struct sim_object *object)
{
	struct graph *graph = (struct graph *)object;

	sim_work_free(graph->work);
	free(graph);
}

static int add(struct sim_work *work, enum sim_kind kind, void **ret_graph)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (!graph) {
		sim_work_free(work);
		return SIM_OUT_OF_MEMORY;
	}
	graph->work = work;
	sim_object_add(&graph->object, kind, NULL, free_graph);
	*ret_graph = graph;
	return SIM_SUCCESS;
}

int sim_graph_new(struct sim_work *work, void **ret_graph)
{
	return add(work, SIM_GRAPH, ret_graph);
}

int sim_graph_create(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	return add(NULL, SIM_GRAPH, (void **)arg[0]);
}

static int destroy(word handle, enum sim_kind kind)
{
	struct graph *graph = sim_object_find(handle, kind);

	if (!graph)
		return SIM_INVALID_VALUE;
	sim_object_remove(&graph->object);
	return SIM_SUCCESS;
}

int sim_graph_destroy(const word *arg)
{
	return destroy(arg[0], SIM_GRAPH);
}

int sim_graph_exec_destroy(const word *arg)
{
	return destroy(arg[0], SIM_GRAPH_EXEC);
}

/* (executable out, graph, ...) in all versions */
int sim_graph_instantiate(const word *arg)
{
	struct graph *graph = sim_object_find(arg[1], SIM_GRAPH);

	if (!arg[0] || !graph)
		return SIM_INVALID_VALUE;
	return add(sim_work_copy(graph->work), SIM_GRAPH_EXEC, (void **)arg[0]);
}

/* (executable, stream) */
int sim_graph_launch(const word *arg)
{
	struct graph *graph = sim_object_find(arg[0], SIM_GRAPH_EXEC);
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[1], &context, &stream);

	if (rc)
		return rc;
	if (!graph)
		return SIM_INVALID_VALUE;
	for (struct sim_work *work = graph->work; work && !context->fault; work = work->next)
		context->fault = sim_work_run(work, context, stream);
	return SIM_SUCCESS;
}
