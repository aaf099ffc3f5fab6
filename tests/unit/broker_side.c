/* What doctor makes of a broker's status. */
#include "doctor/broker_side.h"

#include <criterion/criterion.h>

static void check(const char *status, enum severity expected)
{
	struct findings findings = {0};
	const struct finding *broker;

	broker_side_judge("/run/socket", status, "/proc/self/exe", &findings);
	broker = findings_get(&findings, "broker");
	cr_assert_not_null(broker);
	cr_expect_eq(broker->severity, expected, "from %s: %s", status, broker->text);
	findings_done(&findings);
}

Test(broker_side, is_fine_while_the_keeper_is)
{
	check("{\"keeper\":{\"state\":\"warm\"}}", SEVERITY_OK);
	check("{\"keeper\":{\"state\":\"starting\"}}", SEVERITY_OK);
}

Test(broker_side, says_when_the_keeper_is_away)
{
	check("{\"keeper\":{\"state\":\"failed\",\"rc\":803}}", SEVERITY_WARNING);
	check("{\"keeper\":{\"state\":\"released\"}}", SEVERITY_NOTE);
}

Test(broker_side, says_when_it_is_for_another_driver)
{
	check("{\"keeper\":{\"state\":\"warm\",\"driver\":\"/proc/self/exe\"}}", SEVERITY_OK);
	check("{\"keeper\":{\"state\":\"warm\",\"driver\":\"/usr/lib/libcuda.so.1\"}}",
		SEVERITY_WARNING);
	check("{\"keeper\":{\"state\":\"off\",\"reason\":\"there is no driver\"}}",
		SEVERITY_WARNING);
	check("{\"keeper\":{\"state\":\"off\",\"reason\":\"none was asked for\"}}", SEVERITY_OK);
	/* The machine's may see another root. */
	check("{\"system\":true,\"keeper\":{\"state\":\"warm\",\"driver\":\"/usr/libcuda.so.1\"}}",
		SEVERITY_OK);
}

Test(broker_side, bears_any_text)
{
	check("", SEVERITY_WARNING);
	check("[1]", SEVERITY_WARNING);
	check("{\"keeper\":7}", SEVERITY_WARNING);
	check("{\"keeper\":{\"state\":7}}", SEVERITY_WARNING);
	check("{\"keeper\":{\"state\":\"", SEVERITY_WARNING);
}
