<?php
/**
 * Says in a comment of each SQL statement what a Laravel program is doing, and from which line it sends it.
 *
 * isotap (and whoever else reads sqlcommenter's comments) then names findings by it. In the register method of
 * app/Providers/AppServiceProvider.php, with this file beside it:
 *
 *     require __DIR__ . '/sql_comments.php';
 *     \SqlComments\install(base_path());
 *
 * A request's statements have the action of its route, "OrderController@create", or its name. Commands and jobs name
 * theirs: \SqlComments\action('nightly', fn () => ...).
 */

namespace SqlComments;

use Illuminate\Database\Connection;
use Illuminate\Database\MySqlConnection;
use Illuminate\Database\PostgresConnection;

final class Current
{
    public static ?string $action = null;
    public static string $root = '';
}

/** Runs a function whose statements belong to what the name says, and returns what it returns. */
function action(string $name, callable $run)
{
    $before = Current::$action;
    Current::$action = $name;
    try {
        return $run();
    } finally {
        Current::$action = $before;
    }
}

/** Adds comments to what connections to MySQL, MariaDB and PostgreSQL send. Files below root count as the program's. */
function install(string $root): void
{
    Current::$root = rtrim($root, '/') . '/';
    foreach (['mysql' => MySql::class, 'mariadb' => MySql::class, 'pgsql' => Postgres::class] as $driver => $class) {
        Connection::resolverFor($driver, fn (...$of) => new $class(...$of));
    }
}

trait Comments
{
    protected function run($query, $bindings, \Closure $callback)
    {
        return parent::run($query . comment(), $bindings, $callback);
    }
}

class MySql extends MySqlConnection
{
    use Comments;
}

class Postgres extends PostgresConnection
{
    use Comments;
}

function comment(): string
{
    $pairs = [];
    if ($name = Current::$action ?? route()) {
        $pairs['controller'] = $name;
    }
    foreach (debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS) as $frame) {
        $file = $frame['file'] ?? '';
        if ($file !== __FILE__ && str_starts_with($file, Current::$root) && !str_contains($file, '/vendor/')) {
            $pairs['file'] = substr($file, strlen(Current::$root));
            $pairs['line'] = $frame['line'];
            break;
        }
    }
    // As sqlcommenter says: percent-encoded, and no quote that would end the value. PDO takes a question mark for a
    // parameter, even in a comment: it is encoded as well.
    $said = [];
    foreach ($pairs as $key => $value) {
        $said[] = $key . "='" . rawurlencode((string) $value) . "'";
    }
    return $said ? ' /*' . implode(',', $said) . '*/' : '';
}

/** Returns what the request's route is called, if there is a request. */
function route(): ?string
{
    if (!function_exists('app') || !app()->bound('request') || !($route = app('request')->route())) {
        return null;
    }
    return is_string($route) ? $route : ($route->getName() ?? class_basename($route->getActionName()));
}
