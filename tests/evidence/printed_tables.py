"""Tables of counts as other programs print and write them, all of the same 109 items.

60 items are of class a; of these, 50 are predicted as a, and of the others 46 are right.
"""

A_ROW_PER_TRUE_CLASS = {
    # name: what wrote it
    "pandas to_csv": ",a,b\na,50,10\nb,3,46\n",
    "pandas crosstab to_csv": "Actual,a,b\na,50,10\nb,3,46\n",
    "pandas print": "    a   b\na  50  10\nb   3  46\n",
    "pandas crosstab print": (
        "Predicted   a   b\nActual           \na          50  10\nb           3  46\n"
    ),
    "pandas crosstab with margins": (
        "Predicted   a   b  All\nActual                \na          50  10   60\n"
        "b           3  46   49\nAll        53  56  109\n"
    ),
    "pandas to_string of names with spaces": (
        "Predicted  class a  class b\nActual                     \n"
        "class a         50       10\nclass b          3       46\n"
    ),
    "pandas to_latex": (
        "\\begin{tabular}{lrr}\n\\toprule\n & a & b \\\\\n\\midrule\na & 50 & 10 \\\\\n"
        "b & 3 & 46 \\\\\n\\bottomrule\n\\end{tabular}\n"
    ),
    "pandas to_markdown": (
        "|    |   a |   b |\n|:---|----:|----:|\n| a  |  50 |  10 |\n| b  |   3 |  46 |\n"
    ),
    "polars print": (
        "shape: (2, 3)\n┌────────┬─────┬─────┐\n│ actual ┆ a   ┆ b   │\n│ ---    ┆ --- ┆ --- │\n"
        "│ str    ┆ u32 ┆ u32 │\n╞════════╪═════╪═════╡\n│ a      ┆ 50  ┆ 10  │\n"
        "│ b      ┆ 3   ┆ 46  │\n└────────┴─────┴─────┘\n"
    ),
    "DuckDB print": (
        "┌─────────┬───────┬───────┐\n│ actual  │   a   │   b   │\n│ varchar │ int64 │ int64 │\n"
        "├─────────┼───────┼───────┤\n│ a       │    50 │    10 │\n│ b       │     3 │    46 │\n"
        "└─────────┴───────┴───────┘\n"
    ),
    "Spark show": (
        "+-----------------+---+---+\n|actual_prediction|  a|  b|\n+-----------------+---+---+\n"
        "|                a| 50| 10|\n|                b|  3| 46|\n+-----------------+---+---+\n"
    ),
    "psql": (
        " actual | a  | b  \n--------+----+----\n a      | 50 | 10\n b      |  3 | 46\n(2 rows)\n"
    ),
    "mysql": (
        "+--------+----+----+\n| actual | a  | b  |\n+--------+----+----+\n| a      | 50 | 10 |\n"
        "| b      |  3 | 46 |\n+--------+----+----+\n"
    ),
    "Excel, German": "wahr;a;b\na;50;10\nb;3;46\n",
    "Excel, trailing cells": "true\ta\tb\t\na\t50\t10\t\nb\t3\t46\t\n",
    "KNIME": "\ufeffrow ID,a,b\r\na,50,10\r\nb,3,46\r\n",
    "a corner of both axes": "Actual \\ Predicted,a,b\na,50,10\nb,3,46\n",
    "axes as beginnings of names": ",Pred a,Pred b\nTrue a,50,10\nTrue b,3,46\n",
    "axes on a line of their own": ",Predicted a,Predicted b\nActual,,\na,50,10\nb,3,46\n",
    "R write.csv": '"","a","b"\n"a",50,10\n"b",3,46\n',
    "R kable": "|   |  a|  b|\n|:--|--:|--:|\n|a  | 50| 10|\n|b  |  3| 46|\n",
    "WEKA": (
        "=== Confusion Matrix ===\n\n  a  b   <-- classified as\n 50 10 |  a = a\n  3 46 |  b = b\n"
    ),
    "H2O print": (
        "Confusion Matrix (Act/Pred) for max f1 @ threshold = 0.5:\n"
        "       a    b    Error    Rate\n-----  ---  ---  -------  ----\n"
        "a      50   10   0.1667   (10.0/60.0)\nb      3    46   0.0612   (3.0/49.0)\n"
        "Total  53   56   0.1193   (13.0/109.0)\n"
    ),
    "H2O in R": (
        "Confusion Matrix (vertical: actual; across: predicted)  for max f1 @ threshold = 0.5:\n"
        "       a  b    Error     Rate\na      50 10 0.166667   =10/60\n"
        "b       3 46 0.061224    =3/49\nTotals 53 56 0.119266  =13/109\n"
    ),
    "H2O frame": (
        ",a,b,Error,Rate\n0,50,10,0.1667,10/60\n1,3,46,0.0612,3/49\n2,53,56,0.1193,13/109\n"
    ),
    "ML.NET": (
        "Confusion table\n          ||================\nPREDICTED ||     a |     b | Recall\n"
        "TRUTH     ||================\n        a ||    50 |    10 | 0.8333\n"
        "        b ||     3 |    46 | 0.9388\n          ||================\n"
        "Precision ||0.9434 |0.8214 |\n"
    ),
    "PyCM": "Predict a  b\nActual\na       50 10\n\nb       3  46\n",
}
A_ROW_PER_PREDICTION = {
    "caret": (
        "Confusion Matrix and Statistics\n\n          Reference\nPrediction  a  b\n"
        "         a 50  3\n         b 10 46\n\nOverall Statistics\n\n   Accuracy : 0.8807\n"
    ),
    "yardstick": "          Truth\nPrediction  a  b\n         a 50  3\n         b 10 46\n",
    "R table with sums": (
        "     truth\npred    a  b Sum\n  a    50  3  53\n  b    10 46  56\n  Sum  60 49 109\n"
    ),
    "R table of names with spaces": (
        "          Reference\nPrediction class a class b\n   class a      50       3\n"
        "   class b      10      46\n"
    ),
    "crosstab of predictions": "Predicted,a,b\na,50,3\nb,10,46\n",
    "SNAP map": "map \\ reference,a,b\na,50,3\nb,10,46\n",
}
WITHOUT_NAMES = {
    "numpy": "[[50 10]\n [ 3 46]]",
    "numpy repr": "array([[50, 10],\n       [ 3, 46]])",
    "numpy savetxt": "5.000000000000000000e+01 1.000000000000000000e+01\n"
    "3.000000000000000000e+00 4.600000000000000000e+01\n",
    "JSON": "[[50, 10], [3, 46]]",
    "torch": "tensor([[50, 10],\n        [ 3, 46]], device='cuda:0')",
    "TensorFlow": (
        "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[50, 10],\n       [ 3, 46]], "
        "dtype=int32)>"
    ),
    "Spark ML": "DenseMatrix([[50., 10.],\n             [ 3., 46.]])",
    "MATLAB": "cm =\n\n    50    10\n     3    46\n\n",
    "Julia": "2×2 Matrix{Int64}:\n 50  10\n  3  46",
    "LaTeX": "50 & 10 \\\\\n3 & 46 \\\\\n",
    "a sheet": "50\t10\n3\t46\n",
}
LONG = {
    "R as.data.frame": (
        "  Prediction Truth Freq\n1          a     a   50\n2          b     a   10\n"
        "3          a     b    3\n4          b     b   46\n"
    ),
    "tibble": (
        "# A tibble: 4 × 3\n  truth estimate     n\n  <chr> <chr>    <int>\n"
        "1 a     a           50\n2 a     b           10\n"
        "3 b     a            3\n4 b     b           46\n"
    ),
    "pandas groupby": (
        "  y_true y_pred       n\n0      a      a      50\n1      a      b      10\n"
        "2      b      a       3\n3      b      b      46\n"
    ),
    "R write.csv of a table": (
        '"Prediction","Truth","Freq"\n"a","a",50\n"b","a",10\n"a","b",3\n"b","b",46\n'
    ),
    "SQL": "y_true,y_pred,count(*)\na,a,50\na,b,10\nb,a,3\nb,b,46\n",
}
READ = A_ROW_PER_TRUE_CLASS | A_ROW_PER_PREDICTION | WITHOUT_NAMES | LONG
REFUSED = {
    "thousands": (";a;b\na;1.250;10\nb;3;2.046\n", "`1.250` may be 1250 or 1.25"),
    "shares": (",a,b\na,0.83,0.17\nb,0.06,0.94\n", "look like shares"),
    "percent": (",a,b\na,83 %,17 %\nb,6,94\n", "look like shares"),
    "one total": (",a,b,Total\na,50,10,60\nb,3,46,49\n", "give the totals of both"),
    "both axes true": ("Actual\\True,a,b\na,50,10\nb,3,46\n", "name one true and the other"),
    "a class never predicted": (",a,b\na,50,10\nb,3,46\nc,0,2\n", "the rows `a`, `b`, `c`."),
    "other names": ("Actual,Predicted_0,Predicted_1\nNo,38,2\nYes,1,42\n", "the rows `No`, `Yes`"),
    "four cells": ("TN,FP,FN,TP\n46,3,10,50\n", "four counts of two classes in one row"),
    "four equations": ("TN=46 FP=3 FN=10 TP=50\n", "four counts of two classes in one row"),
    "a report": ("   precision  recall  f1-score  support\n\na 0.9 0.8 0.8 60\n", "no counts"),
    "a dash for none": (",a,b\na,50,-\nb,3,46\n", "Row 2, column 3 of the table is not a number"),
    "too large": (",a,b\na,50,1e400\nb,3,46\n", "larger than any number of items"),
    "heading": ("epoch 3\n50 10\n3 46\n", "a heading or the names of the classes?"),
}
