// How the search ranks what it finds: an object by its own name first, and of namesakes the one nearest to the top.
var Scorer = {
  score: (result) => {
    const [docname, title, , , score, , kind] = result;
    if (kind === "object") {
      const depth = title.split(".").length;
      // What is for tests and examples, or has JAX's name only, stands behind what it is named after.
      const aside = /^functrans\.(testing|test_util|errors|example_libraries|experimental|ref|extend|tree)\./;
      const numpy = title.startsWith("functrans.numpy.") ? 2 : 0; // what most readers mean, beside lax and SciPy
      return score - 4 * depth + numpy - (aside.test(title) ? 3 : 0);
    }
    // The page of an object repeats what the entry of the object says.
    return docname.startsWith("api/functrans") ? score - 10 : score;
  },
  objNameMatch: 100,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
