package bag

const childEnv = "GOBAG_BAG_TEST_CHILD"

func runChild(string) {}
