/* What doctor makes of a stored verdict. */
#include "doctor/proof.h"

#include <criterion/criterion.h>
#include <string.h>

static const char bad[] = "pristine: passed with 0 at \"cuMemFree\", 1.0 ms\n"
			  "fork: died with 11 at \"fork\", 2.0 ms\n"
			  "squash: failed with 999 at \"release\", 3.0 ms\n";

static void check(enum verdict verdict, const char *details, enum severity expected,
	const char *expected_text)
{
	struct findings findings = {0};
	const struct finding *found;

	proof_judge(verdict, details, &findings);
	found = findings_get(&findings, "speculation");
	cr_assert_not_null(found);
	cr_expect_eq(found->severity, expected, "%s", found->text);
	cr_expect(strstr(found->text, expected_text), "%s", found->text);
	findings_done(&findings);
}

Test(proof, is_fine_where_it_passed)
{
	check(VERDICT_PASSED, "", SEVERITY_OK, "proven");
}

Test(proof, names_the_first_step_that_failed)
{
	check(VERDICT_FAILED, bad, SEVERITY_WARNING, "fork: died with 11");
	check(VERDICT_FAILED, "", SEVERITY_WARNING, "no reason stored");
	check(VERDICT_FAILED, "no colon", SEVERITY_WARNING, "no reason stored");
}

Test(proof, is_no_warning_where_there_is_none_yet)
{
	check(VERDICT_NONE, "", SEVERITY_NOTE, "before it is proven");
}

Test(proof, ends_the_culprit_at_its_line)
{
	const char *line = NULL;
	size_t length = proof_culprit(bad, &line);

	cr_expect_eq(length, strlen("fork: died with 11 at \"fork\", 2.0 ms"));
	cr_expect_eq(line, strstr(bad, "fork:"));
	cr_expect_eq(proof_culprit("squash: passed\n\nchanged: passed", &line), 0);
}
