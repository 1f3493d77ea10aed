// Package msgtext prints messages as `ros2 topic echo` does: YAML in PyYAML's style, and CSV (rosidl_runtime_py's
// message_to_yaml and message_to_csv, ros2topic's echo verb).
//
// Where PyYAML folds a string of several lines into an indented block, it is written in double quotes here, on one line; CSV is quoted
// where it must be.
package msgtext
