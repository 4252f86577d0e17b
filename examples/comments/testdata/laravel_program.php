<?php
// One deposit with Laravel's Eloquent, alone or, where LIBRARY says so, for a request.
require 'Illuminate/autoload.php';
require __DIR__ . '/sql_comments.php';

use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Eloquent\Model;

error_reporting(E_ALL & ~E_DEPRECATED);
\SqlComments\install(__DIR__);

$url = parse_url(getenv('DATABASE_URL'));
$capsule = new Capsule;
$capsule->addConnection([
    'driver' => $url['scheme'] === 'postgres' ? 'pgsql' : 'mysql', 'host' => $url['host'], 'port' => $url['port'],
    'database' => substr($url['path'], 1), 'username' => $url['user'], 'password' => '', 'charset' => 'utf8',
]);
$capsule->setAsGlobal();
$capsule->bootEloquent();

class Account extends Model
{
    protected $table = 'account';
    public $timestamps = false;
}

$deposit = function () use ($capsule) {
    $capsule->getConnection()->transaction(function () {
        $account = Account::find(1); // READ
        $account->balance += 10;
        $account->save(); // WRITE
    });
};

if (getenv('LIBRARY') === 'laravel') {
    $app = new Illuminate\Foundation\Application(__DIR__);
    $request = Illuminate\Http\Request::create('/deposit');
    $route = new Illuminate\Routing\Route('GET', '/deposit', ['controller' => 'App\Http\Controllers\AccountController@deposit']);
    $request->setRouteResolver(fn () => $route);
    $app->instance('request', $request);
    $deposit();
} else {
    \SqlComments\action('accounts:deposit', $deposit);
}
