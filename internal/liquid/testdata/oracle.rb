# Renders templates with Liquid itself: {record, templates} as JSON on standard
# input, a JSON array of {output} or {error} on standard output. Errors that are
# none of Liquid are {}: they are mistakes of its own.
require "json"
require "liquid"

question = JSON.parse($stdin.read)
record = Marshal.dump(question["record"])
answers = question["templates"].map do |source|
  begin
    template = Liquid::Template.parse(source, error_mode: :strict)
    output = template.render!({ "record" => Marshal.load(record) }, strict_variables: true, strict_filters: true)
    { output: output.dup.force_encoding("UTF-8").scrub("?") }
  rescue Liquid::Error => e
    { error: e.message }
  rescue StandardError
    {}
  end
end
puts JSON.generate(answers)
